{{- define "admission-controller.name" -}}
gardener-admission-controller
{{- end }}

{{- define "admission-controller.labels" -}}
app: gardener
role: admission-controller
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The selector of the Deployment cannot be changed. */ -}}
{{- define "admission-controller.selector" -}}
app: gardener
role: admission-controller
{{- end }}

{{- define "admission-controller.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "admission-controller.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "apiVersion" "admissioncontroller.config.gardener.cloud/v1alpha1" -}}
{{- $_ := set $config "kind" "AdmissionControllerConfiguration" -}}
{{- if .Values.kubeconfigSecretName -}}
{{- $connection := get $config "gardenClientConnection" | default dict -}}
{{- $_ := set $connection "kubeconfig" "/etc/admission-controller/garden/kubeconfig" -}}
{{- $_ := set $config "gardenClientConnection" $connection -}}
{{- end -}}
{{ toYaml $config }}
{{- end }}

{{- define "admission-controller.subject" -}}
{{- if .Values.user -}}
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: {{ .Values.user }}
{{- else -}}
- kind: ServiceAccount
  name: {{ include "admission-controller.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
{{- end }}
