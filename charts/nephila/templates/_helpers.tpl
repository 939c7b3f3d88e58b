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

{{- /* Labels of an object, each key once: (root, component, and labels of this object). What the chart selects by wins, then those of the object. */ -}}
{{- define "nephila.labels" -}}
{{- $fixed := include "nephila.selectorLabels" . | fromYaml -}}
{{- $_ := set $fixed "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- $_ := set $fixed "app.kubernetes.io/version" (.root.Values.image.tag | default .root.Chart.AppVersion) -}}
{{- $_ := set $fixed "app.kubernetes.io/part-of" "nephila" -}}
{{- $_ := set $fixed "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- merge $fixed (.labels | default dict) .root.Values.commonLabels | toYaml -}}
{{- end -}}

{{- /* metadata of an object: (root, component, name, and namespace, labels, annotations; ofCluster: it has no namespace). Nothing is written behind it: the last key may be
`labels` or `annotations`. */ -}}
{{- define "nephila.metadata" -}}
name: {{ .name }}
{{- if not .ofCluster }}
namespace: {{ .namespace | default .root.Release.Namespace }}
{{- end }}
labels:
  {{- include "nephila.labels" . | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Labels of a pod template, each key once: (root, component, and labels). No version: it would replace pods that nothing else changes. */ -}}
{{- define "nephila.podLabels" -}}
{{- $fixed := include "nephila.selectorLabels" . | fromYaml -}}
{{- merge $fixed (dict "app.kubernetes.io/part-of" "nephila") (.labels | default dict) | toYaml -}}
{{- end -}}

{{- /* Image of a container: (root, service: its name in the registry, section: may have an image of its own). */ -}}
{{- define "nephila.image" -}}
{{- if (.section | default dict).image -}}
{{- .section.image -}}
{{- else -}}
{{- $digest := get .root.Values.image.digests .service -}}
{{ .root.Values.image.repository }}-{{ .service }}{{ if $digest }}@{{ $digest }}{{ else }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{- define "nephila.serviceAccountName" -}}
{{- if .root.Values.serviceAccount.create -}}{{ include "nephila.fullname" .root }}-{{ .component }}{{- else -}}default{{- end -}}
{{- end -}}

{{- define "nephila.bootstrap" -}}
{{- if eq .Values.kafka.mode "external" -}}
{{- required "kafka.external.bootstrap is required with kafka.mode: external" .Values.kafka.external.bootstrap -}}
{{- else if eq .Values.kafka.mode "strimzi" -}}
{{ include "nephila.fullname" . }}-kafka-bootstrap:9093
{{- else -}}
{{ include "nephila.fullname" . }}-kafka:9092
{{- end -}}
{{- end -}}

{{- /* Settings of TLS and SASL in the section kafka, as a map. The files are those of nephila.kafkaVolumes. */ -}}
{{- define "nephila.kafkaSecurity" -}}
{{- $found := dict -}}
{{- if eq .Values.kafka.mode "strimzi" -}}
{{- $_ := set $found "ssl_ca_file" "/etc/nephila-kafka-ca/ca.crt" -}}
{{- if eq .Values.kafka.strimzi.authentication "tls" -}}
{{- $_ := set $found "security_protocol" "SSL" -}}
{{- $_ := set $found "ssl_certificate_file" "/etc/nephila-kafka-login/user.crt" -}}
{{- $_ := set $found "ssl_key_file" "/etc/nephila-kafka-login/user.key" -}}
{{- else -}}
{{- $_ := set $found "security_protocol" "SASL_SSL" -}}
{{- $_ := set $found "sasl_mechanism" "SCRAM-SHA-512" -}}
{{- $_ := set $found "sasl_username" (include "nephila.fullname" .) -}}
{{- $_ := set $found "sasl_password_file" "/etc/nephila-kafka-login/password" -}}
{{- end -}}
{{- else if eq .Values.kafka.mode "external" -}}
{{- $tls := .Values.kafka.external.tls -}}
{{- $sasl := .Values.kafka.external.sasl -}}
{{- if or $tls.enabled $sasl.mechanism -}}
{{- $_ := set $found "security_protocol" (ternary (ternary "SASL_SSL" "SASL_PLAINTEXT" $tls.enabled) "SSL" (ne $sasl.mechanism "")) -}}
{{- end -}}
{{- if $tls.enabled -}}
{{- if $tls.existingSecret -}}{{- $_ := set $found "ssl_ca_file" "/etc/nephila-kafka-ca/ca.crt" -}}{{- end -}}
{{- if $tls.clientCertificate -}}
{{- $_ := required "kafka.external.tls.existingSecret is required with clientCertificate" $tls.existingSecret -}}
{{- $_ := set $found "ssl_certificate_file" "/etc/nephila-kafka-ca/tls.crt" -}}
{{- $_ := set $found "ssl_key_file" "/etc/nephila-kafka-ca/tls.key" -}}
{{- end -}}
{{- if not $tls.checkHostname -}}{{- $_ := set $found "ssl_check_hostname" false -}}{{- end -}}
{{- else if or $tls.existingSecret $tls.clientCertificate -}}
{{- fail "kafka.external.tls has no effect without kafka.external.tls.enabled: true" -}}
{{- end -}}
{{- with $sasl.mechanism -}}
{{- $_ := required "kafka.external.sasl.existingSecret is required with kafka.external.sasl.mechanism" $sasl.existingSecret -}}
{{- $_ := set $found "sasl_mechanism" . -}}
{{- if ne . "OAUTHBEARER" -}}
{{- $_ := set $found "sasl_username" (required "kafka.external.sasl.username is required with PLAIN and SCRAM" $sasl.username) -}}
{{- $_ := set $found "sasl_password_file" "/etc/nephila-kafka-login/password" -}}
{{- else if $sasl.tokenUrl -}}
{{- $_ := set $found "sasl_oauth_token_url" $sasl.tokenUrl -}}
{{- $_ := set $found "sasl_oauth_client_id" (required "kafka.external.sasl.username is required with tokenUrl: the client id" $sasl.username) -}}
{{- $_ := set $found "sasl_oauth_client_secret_file" "/etc/nephila-kafka-login/client-secret" -}}
{{- with $sasl.scope -}}{{- $_ := set $found "sasl_oauth_scope" . -}}{{- end -}}
{{- else -}}
{{- $_ := set $found "sasl_oauth_token_file" "/etc/nephila-kafka-login/token" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{- /* Secrets of the connection to Kafka: folder name to secret name. */ -}}
{{- define "nephila.kafkaSecrets" -}}
{{- $found := dict -}}
{{- if eq .Values.kafka.mode "strimzi" -}}
{{- $_ := set $found "kafka-ca" (printf "%s-cluster-ca-cert" (include "nephila.fullname" .)) -}}
{{- $_ := set $found "kafka-login" (include "nephila.fullname" .) -}}
{{- else if eq .Values.kafka.mode "external" -}}
{{- with .Values.kafka.external.tls.existingSecret -}}{{- $_ := set $found "kafka-ca" . -}}{{- end -}}
{{- if .Values.kafka.external.sasl.mechanism -}}{{- $_ := set $found "kafka-login" .Values.kafka.external.sasl.existingSecret -}}{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{- define "nephila.kafkaMounts" -}}
{{- range $name, $secret := include "nephila.kafkaSecrets" . | fromYaml }}
- {name: {{ $name }}, mountPath: /etc/nephila-{{ $name }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "nephila.kafkaVolumes" -}}
{{- range $name, $secret := include "nephila.kafkaSecrets" . | fromYaml }}
- name: {{ $name }}
  secret: {secretName: {{ $secret }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{- define "nephila.databaseSecret" -}}
{{- if eq .Values.database.mode "external" -}}
{{- required "database.external.existingSecret is required with database.mode: external" .Values.database.external.existingSecret -}}
{{- else -}}
{{- .Values.database.dev.existingSecret | default (printf "%s-postgres" (include "nephila.fullname" .)) -}}
{{- end -}}
{{- end -}}

{{- /* URL of the database of the dev mode; its password is in a file. */ -}}
{{- define "nephila.databaseUrl" -}}
postgresql://nephila@{{ include "nephila.fullname" . }}-postgres/nephila
{{- end -}}

{{- /* Variables of libpq for TLS to an external database. The files are those of nephila.databaseVolumes. */ -}}
{{- define "nephila.databaseEnv" -}}
{{- $tls := .Values.database.external.tls -}}
{{- if eq .Values.database.mode "external" -}}
{{- with $tls.mode }}
- {name: PGSSLMODE, value: {{ . }}}
{{- end }}
{{- if $tls.existingSecret }}
- {name: PGSSLROOTCERT, value: /etc/nephila-database-tls/ca.crt}
{{- if $tls.clientCertificate }}
- {name: PGSSLCERT, value: /etc/nephila-database-tls/tls.crt}
- {name: PGSSLKEY, value: /etc/nephila-database-tls/tls.key}
{{- end }}
{{- else if or $tls.clientCertificate (hasPrefix "verify" $tls.mode) }}
{{- fail "database.external.tls.existingSecret is required with clientCertificate, verify-ca and verify-full" }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "nephila.databaseMounts" -}}
- {name: database, mountPath: /etc/nephila-database, readOnly: true}
{{- if and (eq .Values.database.mode "external") .Values.database.external.tls.existingSecret }}
- {name: database-tls, mountPath: /etc/nephila-database-tls, readOnly: true}
{{- end }}
{{- end -}}

{{- define "nephila.databaseVolumes" -}}
- name: database
  secret: {secretName: {{ include "nephila.databaseSecret" . }}, defaultMode: 0440}
{{- if eq .Values.database.mode "external" }}
{{- with .Values.database.external.tls.existingSecret }}
- name: database-tls
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}
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

{{- /* Security contexts of the restricted Pod Security Standard, for the pod: (uid, section) and for a container: (section, writable). A section of
the values changes single fields. */ -}}
{{- define "nephila.podSecurityContext" -}}
{{- $base := dict "runAsNonRoot" true "runAsUser" .uid "runAsGroup" .uid "fsGroup" .uid "fsGroupChangePolicy" "OnRootMismatch" "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- merge (dict) ((.section | default dict).podSecurityContext | default dict) $base | toYaml -}}
{{- end -}}

{{- define "nephila.securityContext" -}}
{{- $base := dict "allowPrivilegeEscalation" false "capabilities" (dict "drop" (list "ALL")) -}}
{{- if not .writable }}{{ $_ := set $base "readOnlyRootFilesystem" true }}{{ end -}}
{{- merge (dict) ((.section | default dict).securityContext | default dict) $base | toYaml -}}
{{- end -}}

{{- /* Where a pod may run: (root, section). */ -}}
{{- define "nephila.placement" -}}
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
{{- with .section.schedulerName | default $pod.schedulerName }}
schedulerName: {{ . }}
{{- end }}
{{- with .section.runtimeClassName | default $pod.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- end -}}

{{- /* Scheduling fields of the pods of a service: (root, component, section). */ -}}
{{- define "nephila.scheduling" -}}
{{- $pod := .root.Values.pod -}}
{{- include "nephila.placement" . }}
{{- with .section.topologySpreadConstraints | default $pod.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range . }}
  - {{- toYaml . | nindent 4 }}
    labelSelector: {matchLabels: {{ include "nephila.selectorLabels" $ | fromYaml | toJson }}}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Pod template of a service: (root, component). */ -}}
{{- define "nephila.pod" -}}
{{- $root := .root -}}
{{- /* A browser is a downloader with another image and settings of its own. */ -}}
{{- $fetches := has .component (list "downloader" "browser") -}}
{{- $values := .root.Values -}}
{{- $section := index $values .component -}}
{{- /* The variable with the database: the API reads the change feed there. */ -}}
{{- $database := get (dict "storage" "NEPHILA_STORAGE__STORE" "api" "NEPHILA_API__STORE") .component -}}
metadata:
  labels:
    {{- include "nephila.podLabels" (merge (dict "labels" (merge (dict) ($section.labels | default dict) $values.pod.labels $values.commonLabels)) .) | nindent 4 }}
  annotations:
    {{- merge (dict "checksum/config" (include "nephila.systemOf" . | sha256sum)) ($section.annotations | default dict) $values.pod.annotations | toYaml | nindent 4 }}
spec:
  serviceAccountName: {{ include "nephila.serviceAccountName" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  terminationGracePeriodSeconds: {{ $values.pod.terminationGracePeriodSeconds }}
  securityContext:
    {{- include "nephila.podSecurityContext" (dict "uid" 10001 "section" $section) | nindent 4 }}
  {{- with include "nephila.scheduling" (dict "root" $root "component" .component "section" $section) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "nephila.image" (dict "root" $root "service" (eq .component "api" | ternary "cli" .component) "section" $section) }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args: [service, {{ $fetches | ternary (eq $values.crawler.topology "fetchparse" | ternary "fetchparse" "downloader") .component }}]
      securityContext:
        {{- include "nephila.securityContext" (dict "section" $section) | nindent 8 }}
      env:
        - {name: NEPHILA_CONFIG, value: /etc/nephila/{{ eq .component "browser" | ternary "browser" "system" }}.yaml}
        - {name: HOME, value: /tmp}
        - name: NEPHILA_PROGRAM__MEMBER
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        {{- with $section.logLevel }}
        - {name: NEPHILA_PROGRAM__LOG_LEVEL, value: {{ . }}}
        {{- end }}
        {{- if eq .component "api" }}
        - {name: NEPHILA_API__TOKEN_FILE, value: /etc/nephila-token/token}
        {{- if $values.api.access.existingSecret }}
        - {name: NEPHILA_API__ACCESS_FILE, value: /etc/nephila-access/access.yaml}
        {{- end }}
        {{- end }}
        {{- if $database }}
        {{- if eq $values.database.mode "external" }}
        - {name: {{ $database }}_FILE, value: /etc/nephila-database/{{ $values.database.external.existingSecretKey }}}
        {{- else }}
        - {name: {{ $database }}, value: {{ include "nephila.databaseUrl" $root | quote }}}
        - {name: PGPASSWORD_FILE, value: /etc/nephila-database/password}
        {{- end }}
        {{- include "nephila.databaseEnv" $root | nindent 8 }}
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
        failureThreshold: 150
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
        {{- if $values.api.access.existingSecret }}
        - {name: access, mountPath: /etc/nephila-access, readOnly: true}
        {{- end }}
        {{- end }}
        {{- include "nephila.kafkaMounts" $root | nindent 8 }}
        {{- if $database }}
        {{- include "nephila.databaseMounts" $root | nindent 8 }}
        {{- end }}
        {{- if and $fetches $values.downloader.secrets.existingSecret }}
        - {name: job-secrets, mountPath: /secrets, readOnly: true}
        {{- end }}
        {{- if eq .component "browser" }}
        - {name: shm, mountPath: /dev/shm}
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
    {{- with $values.api.access.existingSecret }}
    - name: access
      secret: {secretName: {{ . }}, defaultMode: 0440}
    {{- end }}
    {{- end }}
    {{- include "nephila.kafkaVolumes" $root | nindent 4 }}
    {{- if $database }}
    {{- include "nephila.databaseVolumes" $root | nindent 4 }}
    {{- end }}
    {{- if and $fetches $values.downloader.secrets.existingSecret }}
    - name: job-secrets
      secret: {secretName: {{ $values.downloader.secrets.existingSecret }}, defaultMode: 0440}
    {{- end }}
    {{- if eq .component "browser" }}
    - name: shm
      emptyDir: {medium: Memory, sizeLimit: {{ $section.shmSize }}}
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

{{- /* An egress rule of a network policy: (peers, ports). */ -}}
{{- define "nephila.egress" -}}
{{- with .peers }}
to: {{- toYaml . | nindent 2 }}
{{- end }}
ports:
{{- range .ports }}
  - {port: {{ . }}, protocol: TCP}
{{- end }}
{{- end -}}
