{{- /* The settings of all services, as a map. */ -}}
{{- define "nephila.system" -}}
{{- $blobs := include "nephila.blobs" . -}}
{{- $kafka := merge (dict) .Values.kafka.config (include "nephila.kafkaSecurity" . | fromYaml) -}}
{{- $scheduler := .Values.scheduler.config -}}
{{- $downloader := merge (deepCopy .Values.downloader.config) (dict "dns" (dict "allow_private" .Values.crawler.allowPrivate)) -}}
{{- if $blobs -}}
{{- $kafka = merge (dict) $kafka (dict "blobs" (printf "%s/messages" $blobs)) -}}
{{- $scheduler = merge (dict) $scheduler (dict "blobs" (printf "%s/frontier" $blobs)) -}}
{{- end -}}
{{- if .Values.downloader.secrets.existingSecret -}}
{{- $downloader = merge $downloader (dict "middleware" (dict "secrets" "/secrets")) -}}
{{- end -}}
{{- $api := .Values.api.config -}}
{{- /* The names of the Service: a browser in the cluster opens the console by one of them. */ -}}
{{- $service := printf "%s-api" (include "nephila.fullname" .) -}}
{{- $names := list $service (printf "%s.%s" $service .Release.Namespace) (printf "%s.%s.svc" $service .Release.Namespace) (printf "%s.%s.svc.cluster.local" $service .Release.Namespace) -}}
{{- if .Values.api.ingress.enabled }}{{ $names = append $names .Values.api.ingress.host }}{{ end -}}
{{- if .Values.api.httpRoute.enabled }}{{ $names = concat $names .Values.api.httpRoute.hostnames }}{{ end -}}
{{- $api = merge (dict "console_names" (concat $names ($api.console_names | default list) | uniq)) $api -}}
{{- $system := dict
  "bootstrap" (include "nephila.bootstrap" .)
  "partitions" (.Values.crawler.partitions | int)
  "per_address" (.Values.crawler.perAddress | int)
  "address_gap_s" .Values.crawler.addressGapSeconds
  "metrics_port" 9100
  "grace_s" .Values.crawler.drainSeconds
  "log_level" .Values.crawler.logLevel
  "kafka" $kafka
  "scheduler" $scheduler
  "downloader" $downloader
  "parser" .Values.parser.config
  "storage" .Values.storage.config
  "api" $api
-}}
{{- with .Values.crawler.userAgent }}{{ $_ := set $system "user_agent" . }}{{ end -}}
{{- with .Values.crawler.contact }}{{ $_ := set $system "contact" . }}{{ end -}}
{{- with .Values.crawler.networks }}{{ $_ := set $system "networks" . }}{{ end -}}
{{- with .Values.crawler.tenants }}{{ $_ := set $system "tenants" . }}{{ end -}}
{{- toYaml $system -}}
{{- end -}}

{{- /* The same for browsers: fields of their own in the section of downloaders. */ -}}
{{- define "nephila.browserSystem" -}}
{{- $system := include "nephila.system" . | fromYaml -}}
{{- $_ := set $system "downloader" (mergeOverwrite $system.downloader (deepCopy .Values.browser.config) (dict "browser" (dict "enabled" true))) -}}
{{- toYaml $system -}}
{{- end -}}

{{- /* The settings that one service reads, for the checksum of its pods: (root, component). A change of the others does not
restart it. */ -}}
{{- define "nephila.systemOf" -}}
{{- $fetches := has .component (list "downloader" "browser") -}}
{{- $system := include (eq .component "browser" | ternary "nephila.browserSystem" "nephila.system") .root | fromYaml -}}
{{- $own := list ($fetches | ternary "downloader" .component) -}}
{{- if and $fetches (eq .root.Values.crawler.topology "fetchparse") -}}{{- $own = append $own "parser" -}}{{- end -}}
{{- range $section := list "scheduler" "downloader" "parser" "storage" "api" -}}
{{- if not (has $section $own) -}}{{- $_ := unset $system $section -}}{{- end -}}
{{- end -}}
{{- if not (or $fetches (eq .component "scheduler")) -}}
{{- range $name := list "per_address" "address_gap_s" "networks" -}}{{- $_ := unset $system $name -}}{{- end -}}
{{- end -}}
{{- if not (has .component (list "scheduler" "api")) -}}{{- $_ := unset $system "tenants" -}}{{- end -}}
{{- if (index .root.Values .component).logLevel -}}{{- $_ := unset $system "log_level" -}}{{- end -}}
{{- toYaml $system -}}
{{- end -}}
