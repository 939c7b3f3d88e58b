{{- /* Deployments of services without a state of their own, and their autoscalers. */ -}}

{{- /* (root, component). A new member is ready before an old one ends. */ -}}
{{- define "nephila.deployment" -}}
{{- $section := index .root.Values .component -}}
{{- $scope := dict "root" .root "component" .component "name" (printf "%s-%s" (include "nephila.fullname" .root) .component) "replicas" $section.replicas -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "nephila.scaledMetadata" $scope | nindent 2 }}
spec:
  {{- with include "nephila.replicas" (merge (dict "kind" "Deployment" "scaled" (or $section.autoscaling.enabled $section.keda.enabled)) $scope) }}
  {{- . | nindent 2 }}
  {{- end }}
  revisionHistoryLimit: 3
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  selector:
    matchLabels:
      {{- include "nephila.selectorLabels" $scope | nindent 6 }}
  template:
    {{- include "nephila.pod" $scope | nindent 4 }}
{{- if and $section.autoscaling.enabled (not .root.Values.restore.enabled) }}
{{- if $section.keda.enabled }}{{ fail (printf "%s.autoscaling and %s.keda are both enabled; enable one" .component .component) }}{{ end -}}
{{- if gt (int $section.autoscaling.minReplicas) (int $section.autoscaling.maxReplicas) }}{{ fail (printf "%s.autoscaling.minReplicas is above maxReplicas" .component) }}{{ end }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "nephila.metadata" (omit $scope "replicas") | nindent 2 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ $scope.name }}}
  minReplicas: {{ $section.autoscaling.minReplicas }}
  maxReplicas: {{ $section.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        # Not relative to the request, which is the measured use of a usual member and no limit.
        target: {type: AverageValue, averageValue: {{ mul 10 $section.autoscaling.targetCPUUtilizationPercentage }}m}
  behavior:
    scaleDown:
      stabilizationWindowSeconds: 300
      policies: [{type: Pods, value: 1, periodSeconds: 60}]
{{- end }}
{{- end -}}
