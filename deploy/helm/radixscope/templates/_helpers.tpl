{{/* The name of everything: the release's, with the chart's unless it is part of it. */}}
{{- define "radixscope.name" -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "radixscope.selector" -}}
app.kubernetes.io/name: radixscope
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "radixscope.labels" -}}
{{ include "radixscope.selector" . }}
app.kubernetes.io/component: dashboard
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "radixscope.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* The names under which the page is reached: those of the options, the service's, and that of the login or ingress. */}}
{{- define "radixscope.allowHost" -}}
{{- $names := list (include "radixscope.name" .) -}}
{{- with .Values.options.RADIXSCOPE_ALLOW_HOST }}{{ $names = append $names . }}{{ end -}}
{{- if eq .Values.access.mode "proxy" }}{{ $names = append $names .Values.access.proxy.host }}{{ end -}}
{{- if .Values.ingress.enabled }}{{ $names = append $names .Values.ingress.host }}{{ end -}}
{{- $names | uniq | join "," -}}
{{- end -}}

{{- define "radixscope.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{- define "radixscope.dynamoPods" -}}
- podSelector:
    matchExpressions:
      - { key: nvidia.com/dynamo-component-type, operator: Exists }
  {{- with .Values.kubernetesDiscovery }}
  {{- if and .enabled .namespace }}
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ .namespace }}
  {{- end }}
  {{- end }}
{{- end }}
