{{- define "gardenlet.labels" -}}
app: gardener
role: gardenlet
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | replace ":" "-" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The selector of the Deployment cannot be changed. */ -}}
{{- define "gardenlet.selector" -}}
app: gardener
role: gardenlet
{{- end }}

{{- define "gardenlet.image" -}}
{{- if .Values.image.ref -}}
{{ .Values.image.ref }}
{{- else if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else if hasPrefix "sha256:" .Values.image.tag -}}
{{ .Values.image.repository }}@{{ .Values.image.tag }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- /* The configuration without the kubeconfigs in it. As YAML. */ -}}
{{- define "gardenlet.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "apiVersion" (get $config "apiVersion" | default "gardenlet.config.gardener.cloud/v1alpha1") -}}
{{- $_ := set $config "kind" (get $config "kind" | default "GardenletConfiguration") -}}
{{- $garden := get $config "gardenClientConnection" | default dict -}}
{{- range $name := list "bootstrapKubeconfig" "kubeconfigSecret" -}}
{{- if get $garden $name }}{{ $_ := set $garden $name (omit (get $garden $name) "kubeconfig") }}{{ end -}}
{{- end -}}
{{ toYaml $config }}
{{- end }}

{{- define "gardenlet.seedSubject" -}}
- kind: ServiceAccount
  name: {{ .Values.serviceAccountName }}
  namespace: {{ .Release.Namespace }}
{{- end }}
