{{- define "admission-local.name" -}}gardener-extension-admission-local{{- end }}

{{- define "admission-local.labels" -}}
app.kubernetes.io/name: {{ include "admission-local.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "admission-local.subject" -}}
{{- $account := .Values.gardener.virtualCluster.serviceAccount -}}
{{- if .Values.gardener.virtualCluster.enabled -}}
- kind: ServiceAccount
  name: {{ required "gardener.virtualCluster.serviceAccount.name is required" $account.name }}
  namespace: {{ required "gardener.virtualCluster.serviceAccount.namespace is required" $account.namespace }}
{{- else -}}
- kind: ServiceAccount
  name: {{ include "admission-local.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
{{- end }}
