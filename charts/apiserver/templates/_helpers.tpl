{{- define "apiserver.name" -}}
gardener-apiserver
{{- end }}

{{- define "apiserver.labels" -}}
app: gardener
role: apiserver
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The selector of the Deployment cannot be changed. */ -}}
{{- define "apiserver.selector" -}}
app: gardener
role: apiserver
{{- end }}

{{- define "apiserver.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "apiserver.inRuntime" -}}
{{ if has .Values.mode (list "all" "runtime") }}true{{ end }}
{{- end }}

{{- define "apiserver.inGarden" -}}
{{ if has .Values.mode (list "all" "garden") }}true{{ end }}
{{- end }}

{{- define "apiserver.subject" -}}
{{- if .Values.user -}}
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: {{ .Values.user }}
{{- else -}}
- kind: ServiceAccount
  name: {{ include "apiserver.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
{{- end }}

{{- /* Fails if secrets of the garden would be sent or stored in plain text, unless the values accept it. */ -}}
{{- define "apiserver.refuseInsecure" -}}
{{- if not .Values.insecure -}}
{{- if not .Values.etcd.secretName -}}
{{- fail "etcd.secretName is required, because without a client certificate everyone who reaches etcd reads the keys of all Shoots (insecure: true accepts this)" -}}
{{- end -}}
{{- range .Values.etcd.servers -}}
{{- if not (hasPrefix "https://" .) -}}
{{- fail (printf "etcd.servers: %s must start with https://, because the keys of all Shoots are sent to it (insecure: true accepts this)" .) -}}
{{- end -}}
{{- end -}}
{{- if not .Values.encryptionConfigSecretName -}}
{{- fail "encryptionConfigSecretName is required, because without it etcd and its backups contain the keys of all Shoots in plain text (insecure: true accepts this)" -}}
{{- end -}}
{{- end -}}
{{- end }}
