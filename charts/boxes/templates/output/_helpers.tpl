{{- /* Fixed, as the controller's: an APIService, a policy and the cluster's roles name them. */ -}}
{{- define "boxes.output.collector" -}}
boxes-collector
{{- end -}}

{{- define "boxes.output.logApi" -}}
boxes-log-api
{{- end -}}

{{- define "boxes.output.reader" -}}
boxes-output-reader
{{- end -}}

{{- /* What the log API finds it by, and what its certificate is for. */ -}}
{{- define "boxes.output.readerHost" -}}
{{ include "boxes.output.reader" . }}.{{ .Release.Namespace }}.svc
{{- end -}}

{{- define "boxes.output.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- /* Of the chart's context and the component, in a list. */ -}}
{{- define "boxes.output.labels" -}}
{{- $root := index . 0 -}}
{{ include "boxes.output.selectorLabels" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name ($root.Chart.Version | replace "+" "_") }}
{{- end -}}

{{- /* What both pods say about themselves. Of the chart's context and the component, in a list. */ -}}
{{- define "boxes.output.podMetadata" -}}
{{- $root := index . 0 -}}
labels:
  {{- include "boxes.output.labels" . | nindent 2 }}
  {{- with $root.Values.output.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  kubectl.kubernetes.io/default-container: {{ index . 1 }}
  {{- with $root.Values.output.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- /* Who a pod runs as. Of the chart's context, the component and the name, in a list. */ -}}
{{- define "boxes.output.serviceAccount" -}}
{{- $root := index . 0 -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ index . 2 }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "boxes.output.labels" . | nindent 4 }}
  {{- with $root.Values.output.serviceAccountAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
# The pods ask for the token; nothing else that uses this account gets one.
automountServiceAccountToken: false
{{- end -}}

{{- /* What a server may. Of the chart's context, the component, the name, and whether it finds output, in a list. */ -}}
{{- define "boxes.output.clusterRole" -}}
{{- $root := index . 0 -}}
{{- $name := index . 2 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels:
    {{- include "boxes.output.labels" . | nindent 4 }}
rules:
  {{- if index . 3 }}
  # From the name of a box to its UIDs, which lead to its output.
  - apiGroups: [boxes.run]
    resources: [boxes]
    verbs: [get]
  {{- end }}
  # Whether a user may read it.
  - apiGroups: [authorization.k8s.io]
    resources: [subjectaccessreviews]
    verbs: [create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "boxes.output.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ $root.Release.Namespace }}
{{- end -}}

{{- /* What all log. */ -}}
{{- define "boxes.output.logArgs" -}}
- --log-level={{ .Values.logLevel }}
- --log-format={{ .Values.logFormat }}
{{- end -}}

{{- /* By which they find the archive. */ -}}
{{- define "boxes.output.archiveArgs" -}}
- --archive={{ .Values.output.archive.url }}
{{- range $key, $value := .Values.output.archive.options }}
- {{ printf "--archive-option=%s=%s" $key $value | quote }}
{{- end }}
{{- end -}}

{{- /* Whether the archive is a folder, and so a volume: not empty if it is. */ -}}
{{- define "boxes.output.isFolder" -}}
{{- if hasPrefix "file://" .Values.output.archive.url }}yes{{ end -}}
{{- end -}}

{{- /*
Whether the archive has a reader of its own: not empty if it does. The log API must not wait for a
volume, so that one that is held back does not hold back the deletion of namespaces.
*/ -}}
{{- define "boxes.output.hasReader" -}}
{{- if and .Values.output.enabled .Values.output.logApi.enabled (include "boxes.output.isFolder" .) }}yes{{ end -}}
{{- end -}}

{{- /* Whether the chart makes the claim: not empty if it does. */ -}}
{{- define "boxes.output.makesClaim" -}}
{{- $archive := .Values.output.archive -}}
{{- if and (include "boxes.output.isFolder" .) (not $archive.volume) (not $archive.hostPath) $archive.persistence.enabled (not $archive.persistence.existingClaim) }}yes{{ end -}}
{{- end -}}

{{- define "boxes.output.claimName" -}}
{{- .Values.output.archive.persistence.existingClaim | default "boxes-archive" -}}
{{- end -}}

{{- /* The volumes that the archive needs. */ -}}
{{- define "boxes.output.volumes" -}}
{{- $archive := .Values.output.archive -}}
{{- if include "boxes.output.isFolder" . }}
- name: archive
  {{- if $archive.volume }}
  {{- toYaml $archive.volume | nindent 2 }}
  {{- else if $archive.hostPath }}
  hostPath:
    path: {{ $archive.hostPath | quote }}
    type: DirectoryOrCreate
  {{- else if $archive.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ include "boxes.output.claimName" . }}
  {{- else }}
  {{- fail "output.archive.url is a folder, so output.archive needs persistence.enabled, hostPath or volume" }}
  {{- end }}
{{- end }}
{{- with $archive.caConfigMap }}
- name: archive-ca
  configMap:
    name: {{ . }}
{{- end }}
{{- end -}}

{{- /* Where they are mounted. Of the chart's context and whether the archive is only read, in a list. */ -}}
{{- define "boxes.output.volumeMounts" -}}
{{- $root := index . 0 -}}
{{- if include "boxes.output.isFolder" $root }}
- name: archive
  mountPath: {{ trimPrefix "file://" $root.Values.output.archive.url | quote }}
  readOnly: {{ index . 1 }}
{{- end }}
{{- if $root.Values.output.archive.caConfigMap }}
- name: archive-ca
  mountPath: /etc/boxes/archive-ca
  readOnly: true
{{- end }}
{{- end -}}

{{- /* Where the archive's credentials come from. */ -}}
{{- define "boxes.output.environment" -}}
{{- with .Values.output.archive.credentialsSecret }}
envFrom:
  - secretRef:
      name: {{ . }}
{{- end }}
{{- end -}}

{{- /* Whom the archive's client trusts beside the public authorities. */ -}}
{{- define "boxes.output.caVariable" -}}
{{- if .Values.output.archive.caConfigMap }}
- name: SSL_CERT_FILE
  value: /etc/boxes/archive-ca/ca.crt
{{- end }}
{{- end -}}

{{- define "boxes.output.tlsSecret" -}}
{{- .Values.output.logApi.tls.existingSecret | default "boxes-log-api-tls" -}}
{{- end -}}

{{- /* By which the reader is known. */ -}}
{{- define "boxes.output.readerSecret" -}}
{{- .Values.output.reader.tls.existingSecret | default "boxes-output-reader-tls" -}}
{{- end -}}

{{- /* By which the reader knows the log API. */ -}}
{{- define "boxes.output.clientSecret" -}}
{{- .Values.output.reader.tls.existingClientSecret | default "boxes-log-api-client" -}}
{{- end -}}
