{{- define "provider-local.name" -}}gardener-extension-provider-local{{- end }}

{{- define "provider-local.labels" -}}
{{ include "provider-local.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The selector of the Deployment cannot be changed. */ -}}
{{- define "provider-local.selector" -}}
app.kubernetes.io/name: {{ include "provider-local.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "provider-local.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}
