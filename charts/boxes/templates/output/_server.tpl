{{- /*
A server of output: the log API, and the reader behind it. Of a dict:
  root       the chart's context
  name       of everything
  component  its label and its container
  values     replicas, resources, and where it may run
  reads      not empty if it opens the archive itself
  args       its own arguments, beside those that all have
  secrets    what is mounted: folder, name, optional
  port       of the Service
*/ -}}
{{- define "boxes.output.server" -}}
{{- $root := .root -}}
{{- $api := .values -}}
{{- $selector := list $root .component -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "boxes.output.labels" $selector | nindent 4 }}
spec:
  replicas: {{ $api.replicas }}
  strategy:
    rollingUpdate:
      maxUnavailable: 0
      maxSurge: 1
  selector:
    matchLabels:
      {{- include "boxes.output.selectorLabels" $selector | nindent 6 }}
  template:
    metadata:
      {{- include "boxes.output.podMetadata" $selector | nindent 6 }}
    spec:
      serviceAccountName: {{ .name }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      # It goes on answering for 5 s, and lets answers end for another 15.
      terminationGracePeriodSeconds: 30
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $api.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: {{ .component }}
          image: {{ include "boxes.image" (list $root.Values.output.image $root.Chart.AppVersion) | quote }}
          imagePullPolicy: {{ $root.Values.output.image.pullPolicy }}
          command: [/boxes-log-api]
          args:
            {{- include "boxes.output.logArgs" $root | nindent 12 }}
            {{- if .reads }}
            {{- include "boxes.output.archiveArgs" $root | nindent 12 }}
            {{- end }}
            - --listen=0.0.0.0:8443
            - --health-listen=0.0.0.0:8080
            - --tls-cert=/etc/boxes/tls/tls.crt
            - --tls-key=/etc/boxes/tls/tls.key
            {{- range .args }}
            - {{ . }}
            {{- end }}
          {{- if .reads }}
          {{- with include "boxes.output.environment" $root }}
          {{- trim . | nindent 10 }}
          {{- end }}
          {{- with include "boxes.output.caVariable" $root }}
          env:
            {{- trim . | nindent 12 }}
          {{- end }}
          {{- end }}
          ports:
            - name: https
              containerPort: 8443
              protocol: TCP
            - name: http
              containerPort: 8080
              protocol: TCP
          livenessProbe:
            httpGet:
              path: /livez
              port: http
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 3
          # Ready also without the archive, which each request is then told.
          readinessProbe:
            httpGet:
              path: /readyz
              port: http
            periodSeconds: 2
            timeoutSeconds: 2
            failureThreshold: 3
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          {{- with $api.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          volumeMounts:
            {{- range .secrets }}
            - name: {{ .folder }}
              mountPath: /etc/boxes/{{ .folder }}
              readOnly: true
            {{- end }}
            {{- if .reads }}
            {{- with include "boxes.output.volumeMounts" (list $root true) }}
            {{- trim . | nindent 12 }}
            {{- end }}
            {{- end }}
      volumes:
        {{- range .secrets }}
        - name: {{ .folder }}
          secret:
            secretName: {{ .name }}
            {{- if .optional }}
            optional: true
            {{- end }}
        {{- end }}
        {{- if .reads }}
        {{- with include "boxes.output.volumes" $root }}
        {{- trim . | nindent 8 }}
        {{- end }}
        {{- end }}
      {{- if $api.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- range $api.topologySpreadConstraints }}
        - {{ toYaml . | nindent 10 | trim }}
          labelSelector:
            matchLabels:
              {{- include "boxes.output.selectorLabels" $selector | nindent 14 }}
        {{- end }}
      {{- end }}
      {{- with $api.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $api.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $api.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- /* With one replica it would let no node be drained. */}}
{{- if gt (int $api.replicas) 1 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "boxes.output.labels" $selector | nindent 4 }}
spec:
  minAvailable: 1
  selector:
    matchLabels:
      {{- include "boxes.output.selectorLabels" $selector | nindent 6 }}
{{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "boxes.output.labels" $selector | nindent 4 }}
spec:
  type: ClusterIP
  selector:
    {{- include "boxes.output.selectorLabels" $selector | nindent 4 }}
  ports:
    - name: https
      port: {{ .port }}
      targetPort: https
      protocol: TCP
{{- end -}}
