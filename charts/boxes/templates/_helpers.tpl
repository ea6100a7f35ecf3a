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

{{- /* Of the values of an image and the chart's appVersion, in a list. */ -}}
{{- define "boxes.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default (index . 1) }}
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
