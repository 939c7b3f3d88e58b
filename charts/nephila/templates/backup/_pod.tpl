{{- /* The pod that writes or restores a backup: (root, component, frontier and rows: the scripts of both containers). The first one of `order` ends before
the other begins. */ -}}
{{- define "nephila.backupPod" -}}
{{- $root := .root -}}
{{- $values := .root.Values -}}
{{- $section := $values.backup -}}
{{- $blobs := and $values.blobStore.persistence.enabled (not $values.blobStore.url) -}}
{{- $restores := eq .component "restore" -}}
metadata:
  labels:
    {{- include "nephila.podLabels" (dict "root" $root "component" .component "labels" (merge (dict) $values.pod.labels $values.commonLabels)) | nindent 4 }}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "nephila.podSecurityContext" (dict "uid" 10001 "section" $section) | nindent 4 }}
  {{- with include "nephila.placement" (dict "root" $root "section" $section) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- range $place, $name := dict "initContainers" (first .order) "containers" (last .order) }}
  {{ $place }}:
    - name: {{ $name }}
      {{- if eq $name "frontier" }}
      image: {{ include "nephila.image" (dict "root" $root "service" "cli" "section" $section) }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      {{- else }}
      image: {{ $section.postgresImage }}
      {{- end }}
      command: [sh, -ceu]
      args:
        - |
          {{- get $ $name | trim | nindent 10 }}
      securityContext:
        {{- include "nephila.securityContext" (dict "section" $section) | nindent 8 }}
      env:
        - {name: HOME, value: /tmp}
        {{- if eq $name "rows" }}
        {{- include "nephila.databaseEnv" $root | nindent 8 }}
        {{- end }}
      {{- if and (eq $name "frontier") $values.blobStore.url $values.blobStore.existingSecret }}
      envFrom: [{secretRef: {name: {{ $values.blobStore.existingSecret }}}}]
      {{- end }}
      resources: {{- toYaml $section.resources | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: backups, mountPath: /backups{{ if $restores }}, readOnly: true{{ end }}}
        {{- if eq $name "frontier" }}
        - {name: config, mountPath: /etc/nephila, readOnly: true}
        {{- if $blobs }}
        - {name: blobs, mountPath: /blobs{{ if not $restores }}, readOnly: true{{ end }}}
        {{- end }}
        {{- include "nephila.kafkaMounts" $root | nindent 8 }}
        {{- else }}
        {{- include "nephila.databaseMounts" $root | nindent 8 }}
        {{- end }}
  {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    - name: backups
      persistentVolumeClaim: {claimName: {{ include "nephila.backupClaim" $root }}}
    - name: config
      configMap: {name: {{ include "nephila.fullname" $root }}-config}
    {{- if $blobs }}
    - name: blobs
      persistentVolumeClaim: {claimName: {{ include "nephila.blobClaim" $root }}}
    {{- end }}
    {{- include "nephila.databaseVolumes" $root | nindent 4 }}
    {{- include "nephila.kafkaVolumes" $root | nindent 4 }}
{{- end -}}

{{- define "nephila.backupClaim" -}}
{{- .Values.backup.persistence.existingClaim | default (printf "%s-backup" (include "nephila.fullname" .)) -}}
{{- end -}}

{{- /* Lines of a script that set `database`, and the variable with its password where the URL has none. */ -}}
{{- define "nephila.databaseOfScript" -}}
{{- if eq .Values.database.mode "external" -}}
database=$(cat /etc/nephila-database/{{ .Values.database.external.existingSecretKey }})
{{- else -}}
database={{ include "nephila.databaseUrl" . }}
export PGPASSWORD="$(cat /etc/nephila-database/password)"
{{- end -}}
{{- end -}}
