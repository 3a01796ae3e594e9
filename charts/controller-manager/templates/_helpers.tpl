{{- define "controller-manager.name" -}}
gardener-controller-manager
{{- end }}

{{- define "controller-manager.labels" -}}
app: gardener
role: controller-manager
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The selector of the Deployment cannot be changed. */ -}}
{{- define "controller-manager.selector" -}}
app: gardener
role: controller-manager
{{- end }}

{{- define "controller-manager.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "controller-manager.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "apiVersion" "controllermanager.config.gardener.cloud/v1alpha1" -}}
{{- $_ := set $config "kind" "ControllerManagerConfiguration" -}}
{{- if .Values.kubeconfigSecretName -}}
{{- $connection := get $config "gardenClientConnection" | default dict -}}
{{- $_ := set $connection "kubeconfig" "/etc/controller-manager/garden/kubeconfig" -}}
{{- $_ := set $config "gardenClientConnection" $connection -}}
{{- end -}}
{{ toYaml $config }}
{{- end }}

{{- define "controller-manager.subject" -}}
{{- if .Values.user -}}
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: {{ .Values.user }}
{{- else -}}
- kind: ServiceAccount
  name: {{ include "controller-manager.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
{{- end }}
