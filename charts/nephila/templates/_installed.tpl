{{- /* What cannot change in an upgrade stays as it is installed (docs/adr/0166). Without a cluster (`helm template`) nothing
is known of the release, and the values count. */ -}}

{{- /* The line `replicas` of a Deployment or StatefulSet: (root, kind, name, replicas, scaled). A number that somebody else
has set (kubectl scale, an autoscaler) stays, until the value itself changes. `scaled`: an autoscaler of this release sets it,
from 1 on after a restore: it leaves a Deployment of none as it is. */ -}}
{{- define "nephila.replicas" -}}
{{- $live := lookup "apps/v1" .kind .root.Release.Namespace .name | default dict -}}
{{- $value := int .replicas -}}
{{- $before := dig "metadata" "annotations" "nephila.dev/replicas" (toString $value) $live -}}
{{- if .root.Values.restore.enabled -}}
replicas: 0
{{- else if and .scaled (eq $before "restore") -}}
replicas: 1
{{- else if and $live (or .scaled (eq $before (toString $value))) -}}
replicas: {{ dig "spec" "replicas" $value $live | int }}
{{- else if not .scaled -}}
replicas: {{ $value }}
{{- end -}}
{{- end -}}

{{- /* metadata of what has replicas: (root, component, name, replicas). The annotation is the value of this revision. */ -}}
{{- define "nephila.scaledMetadata" -}}
{{- $value := .root.Values.restore.enabled | ternary "restore" (.replicas | int | toString) -}}
{{- include "nephila.metadata" (merge (dict "annotations" (dict "nephila.dev/replicas" $value)) .) -}}
{{- end -}}

{{- /* volumeClaimTemplates of a StatefulSet, as a list, which is empty for an emptyDir: (root, name, size, storageClass). */ -}}
{{- define "nephila.claims" -}}
{{- $found := list -}}
{{- $live := lookup "apps/v1" "StatefulSet" .root.Release.Namespace .name -}}
{{- if $live -}}
{{- range dig "spec" "volumeClaimTemplates" list $live -}}
{{- $found = append $found (dict "metadata" (dict "name" .metadata.name) "spec" .spec) -}}
{{- end -}}
{{- else if and .size (or .storageClass (include "nephila.hasVolumes" .root)) -}}
{{- $found = append $found (dict "metadata" (dict "name" "data") "spec" (include "nephila.claimSpec" (dict "size" .size "storageClass" .storageClass) | fromYaml)) -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{- /* Whether volumes of the default class can be had; empty: they cannot. A list without `items` is the answer of no cluster. */ -}}
{{- define "nephila.hasVolumes" -}}
{{- if eq .Values.volumes "always" -}}true
{{- else -}}
{{- $classes := lookup "storage.k8s.io/v1" "StorageClass" "" "" -}}
{{- if not (hasKey $classes "items") -}}true{{- end -}}
{{- range $classes.items -}}
{{- if eq (dig "metadata" "annotations" "storageclass.kubernetes.io/is-default-class" "" .) "true" -}}true{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Spec of a PersistentVolumeClaim of this chart: (root, name, accessModes, size, storageClass). */ -}}
{{- define "nephila.keptClaimSpec" -}}
{{- $given := include "nephila.claimSpec" . | fromYaml -}}
{{- $live := lookup "v1" "PersistentVolumeClaim" .root.Release.Namespace .name -}}
{{- if $live -}}
{{- $_ := set $given "accessModes" $live.spec.accessModes -}}
{{- $_ := set $given "storageClassName" (dig "spec" "storageClassName" "" $live) -}}
{{- $size := dig "spec" "resources" "requests" "storage" .size $live -}}
{{- if gt (include "nephila.bytes" $size | float64) (include "nephila.bytes" .size | float64) -}}
{{- $_ := set $given "resources" (dict "requests" (dict "storage" $size)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $given -}}
{{- end -}}

{{- /* A quantity of Kubernetes as a number of bytes. */ -}}
{{- define "nephila.bytes" -}}
{{- $units := dict "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 -}}
{{- mulf (regexFind "^[0-9.]+" . | float64) (index $units (regexFind "[A-Za-z]*$" .)) -}}
{{- end -}}
