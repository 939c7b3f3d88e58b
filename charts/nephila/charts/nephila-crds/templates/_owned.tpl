{{- /* Whether an object of the cluster is installed by another release: (root, apiVersion, kind, name). It is left to it. */ -}}
{{- define "nephila-crds.foreign" -}}
{{- $annotations := dig "metadata" "annotations" dict (lookup .apiVersion .kind "" .name | default dict) -}}
{{- $owner := get $annotations "meta.helm.sh/release-name" -}}
{{- if and $owner (or (ne $owner .root.Release.Name) (ne (get $annotations "meta.helm.sh/release-namespace") .root.Release.Namespace)) -}}true{{- end -}}
{{- end -}}
