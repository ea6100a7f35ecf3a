{{- /*
Names are fixed, not derived from the release: boxes are cluster-wide, and two controllers with two
leases would both act on every box. A second release fails on the ClusterRole of the first.
*/ -}}
{{- define "boxes.name" -}}
boxes-controller
{{- end -}}

{{- define "boxes.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "boxes.name" .) -}}
{{- end -}}

{{- define "boxes.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "boxes.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "boxes.labels" -}}
{{ include "boxes.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}
