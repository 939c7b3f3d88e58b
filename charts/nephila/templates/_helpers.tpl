{{- define "nephila.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "nephila.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "nephila.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "nephila.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* Labels of pods and their selectors: (root, component). */ -}}
{{- define "nephila.selectorLabels" -}}
app.kubernetes.io/name: {{ include "nephila.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "nephila.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{ include "nephila.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: nephila
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* metadata of an object: (root, component, name). */ -}}
{{- define "nephila.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "nephila.labels" . | nindent 2 }}
{{- with .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "nephila.image" -}}
{{ .root.Values.image.repository }}-{{ .service }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end -}}

{{- define "nephila.serviceAccountName" -}}
{{- if .root.Values.serviceAccount.create -}}{{ include "nephila.fullname" .root }}-{{ .component }}{{- else -}}default{{- end -}}
{{- end -}}

{{- define "nephila.bootstrap" -}}
{{- if eq .Values.kafka.mode "external" -}}
{{- required "kafka.external.bootstrap is required with kafka.mode: external" .Values.kafka.external.bootstrap -}}
{{- else if eq .Values.kafka.mode "strimzi" -}}
{{ include "nephila.fullname" . }}-kafka-bootstrap:9092
{{- else -}}
{{ include "nephila.fullname" . }}-kafka:9092
{{- end -}}
{{- end -}}

{{- define "nephila.databaseSecret" -}}
{{- if eq .Values.database.mode "external" -}}
{{- required "database.external.existingSecret is required with database.mode: external" .Values.database.external.existingSecret -}}
{{- else -}}
{{- .Values.database.dev.existingSecret | default (printf "%s-postgres" (include "nephila.fullname" .)) -}}
{{- end -}}
{{- end -}}

{{- define "nephila.tokenSecret" -}}
{{- .Values.api.existingSecret | default (printf "%s-api" (include "nephila.fullname" .)) -}}
{{- end -}}

{{- /* Place of blobs: a bucket, a shared volume, or none. */ -}}
{{- define "nephila.blobs" -}}
{{- if .Values.blobStore.url -}}{{ .Values.blobStore.url }}{{- else if .Values.blobStore.persistence.enabled -}}/blobs{{- end -}}
{{- end -}}

{{- define "nephila.blobClaim" -}}
{{- .Values.blobStore.persistence.existingClaim | default (printf "%s-blobs" (include "nephila.fullname" .)) -}}
{{- end -}}

{{- /* Security contexts of the restricted Pod Security Standard: (uid). */ -}}
{{- define "nephila.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: {{ .uid }}
runAsGroup: {{ .uid }}
fsGroup: {{ .uid }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "nephila.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- /* Scheduling fields of a pod: (root, component, section). */ -}}
{{- define "nephila.scheduling" -}}
{{- $pod := .root.Values.pod -}}
{{- with .section.nodeSelector | default $pod.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .section.tolerations | default $pod.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .section.affinity | default $pod.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .section.priorityClassName | default $pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .section.topologySpreadConstraints | default $pod.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range . }}
  - {{- toYaml . | nindent 4 }}
    labelSelector: {matchLabels: {{ include "nephila.selectorLabels" $ | fromYaml | toJson }}}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Pod template of one of the four services: (root, component). */ -}}
{{- define "nephila.pod" -}}
{{- $root := .root -}}
{{- $values := .root.Values -}}
{{- $section := index $values .component -}}
metadata:
  labels:
    {{- include "nephila.labels" . | nindent 4 }}
    {{- with merge dict ($section.labels | default dict) $values.pod.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include (print $root.Template.BasePath "/configmap.yaml") $root | sha256sum }}
    {{- with merge dict ($section.annotations | default dict) $values.pod.annotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "nephila.serviceAccountName" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  terminationGracePeriodSeconds: {{ $values.pod.terminationGracePeriodSeconds }}
  securityContext:
    {{- include "nephila.podSecurityContext" (dict "uid" 10001) | nindent 4 }}
  {{- with include "nephila.scheduling" (dict "root" $root "component" .component "section" $section) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "nephila.image" (dict "root" $root "service" (eq .component "api" | ternary "cli" .component)) }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args: [{{ and (eq .component "downloader") (eq $values.crawler.topology "fetchparse") | ternary "fetchparse" .component }}]
      securityContext:
        {{- include "nephila.securityContext" . | nindent 8 }}
      env:
        - {name: NEPHILA_CONFIG, value: /etc/nephila/system.yaml}
        - {name: HOME, value: /tmp}
        - name: NEPHILA_PROGRAM__MEMBER
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        {{- if eq .component "api" }}
        - {name: NEPHILA_API__TOKEN_FILE, value: /etc/nephila-token/token}
        {{- end }}
        {{- if eq .component "storage" }}
        {{- if eq $values.database.mode "external" }}
        - name: NEPHILA_STORAGE__STORE
          valueFrom:
            secretKeyRef: {name: {{ include "nephila.databaseSecret" $root }}, key: {{ $values.database.external.existingSecretKey }}}
        {{- else }}
        - name: PGPASSWORD
          valueFrom:
            secretKeyRef: {name: {{ include "nephila.databaseSecret" $root }}, key: password}
        - {name: NEPHILA_STORAGE__STORE, value: "postgresql://nephila@{{ include "nephila.fullname" $root }}-postgres/nephila"}
        {{- end }}
        {{- end }}
        {{- with concat $values.pod.extraEnv ($section.extraEnv | default list) }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- $from := concat $values.pod.extraEnvFrom ($section.extraEnvFrom | default list) }}
      {{- if and $values.blobStore.url $values.blobStore.existingSecret }}
      {{- $from = append $from (dict "secretRef" (dict "name" $values.blobStore.existingSecret)) }}
      {{- end }}
      {{- with $from }}
      envFrom: {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - {name: metrics, containerPort: 9100}
      startupProbe:
        httpGet: {path: /healthz, port: metrics}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: metrics}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: metrics}
        periodSeconds: 3
        timeoutSeconds: 3
      resources: {{- toYaml $section.resources | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/nephila, readOnly: true}
        - {name: tmp, mountPath: /tmp}
        - {name: data, mountPath: /data}
        {{- if and $values.blobStore.persistence.enabled (not $values.blobStore.url) }}
        - {name: blobs, mountPath: /blobs}
        {{- end }}
        {{- if eq .component "api" }}
        - {name: token, mountPath: /etc/nephila-token, readOnly: true}
        {{- end }}
        {{- if and (eq .component "downloader") $values.downloader.secrets.existingSecret }}
        - {name: job-secrets, mountPath: /secrets, readOnly: true}
        {{- end }}
        {{- with concat $values.pod.extraVolumeMounts ($section.extraVolumeMounts | default list) }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap: {name: {{ include "nephila.fullname" $root }}-config}
    - name: tmp
      emptyDir: {}
    {{- if not .dataClaim }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- if and $values.blobStore.persistence.enabled (not $values.blobStore.url) }}
    - name: blobs
      persistentVolumeClaim: {claimName: {{ include "nephila.blobClaim" $root }}}
    {{- end }}
    {{- if eq .component "api" }}
    - name: token
      secret: {secretName: {{ include "nephila.tokenSecret" $root }}, defaultMode: 0440}
    {{- end }}
    {{- if and (eq .component "downloader") $values.downloader.secrets.existingSecret }}
    - name: job-secrets
      secret: {secretName: {{ $values.downloader.secrets.existingSecret }}, defaultMode: 0440}
    {{- end }}
    {{- with concat $values.pod.extraVolumes ($section.extraVolumes | default list) }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- /* A PersistentVolumeClaim's spec: (accessModes, size, storageClass). */ -}}
{{- define "nephila.claimSpec" -}}
accessModes: {{ toJson (.accessModes | default (list "ReadWriteOnce")) }}
resources: {requests: {storage: {{ .size }}}}
{{- with .storageClass }}
storageClassName: {{ . }}
{{- end }}
{{- end -}}
