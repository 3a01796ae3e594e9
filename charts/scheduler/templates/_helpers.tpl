{{- define "scheduler.name" -}}
gardener-scheduler
{{- end }}

{{- define "scheduler.labels" -}}
app: gardener
role: scheduler
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The selector of the Deployment cannot be changed. */ -}}
{{- define "scheduler.selector" -}}
app: gardener
role: scheduler
{{- end }}

{{- define "scheduler.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "scheduler.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "apiVersion" "scheduler.config.gardener.cloud/v1alpha1" -}}
{{- $_ := set $config "kind" "SchedulerConfiguration" -}}
{{- if .Values.kubeconfigSecretName -}}
{{- $connection := get $config "clientConnection" | default dict -}}
{{- $_ := set $connection "kubeconfig" "/etc/scheduler/garden/kubeconfig" -}}
{{- $_ := set $config "clientConnection" $connection -}}
{{- end -}}
{{ toYaml $config }}
{{- end }}

{{- define "scheduler.subject" -}}
{{- if .Values.user -}}
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: {{ .Values.user }}
{{- else -}}
- kind: ServiceAccount
  name: {{ include "scheduler.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
{{- end }}
