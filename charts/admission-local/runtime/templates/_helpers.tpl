{{- define "admission-local.name" -}}gardener-extension-admission-local{{- end }}

{{- define "admission-local.labels" -}}
{{ include "admission-local.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The selector of the Deployment cannot be changed. */ -}}
{{- define "admission-local.selector" -}}
app.kubernetes.io/name: {{ include "admission-local.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "admission-local.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "admission-local.namespace" -}}
{{- if .Values.gardener.virtualCluster.enabled -}}
{{ required "gardener.virtualCluster.namespace is required" .Values.gardener.virtualCluster.namespace }}
{{- else -}}
{{ .Release.Namespace }}
{{- end }}
{{- end }}
