{{- define "operator.labels" -}}
app: gardener
role: operator
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The selector of the Deployment cannot be changed. */ -}}
{{- define "operator.selector" -}}
app: gardener
role: operator
{{- end }}

{{- define "operator.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "operator.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "apiVersion" "operator.config.gardener.cloud/v1alpha1" -}}
{{- $_ := set $config "kind" "OperatorConfiguration" -}}
{{ toYaml $config }}
{{- end }}
