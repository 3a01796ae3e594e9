{{- define "resource-manager.name" -}}
{{ .Values.namePrefix }}gardener-resource-manager
{{- end }}

{{- /* The name of cluster-scoped objects. It is unique for each installation, since there may be one in another namespace. */ -}}
{{- define "resource-manager.clusterName" -}}
{{ .Release.Namespace }}:{{ include "resource-manager.name" . }}
{{- end }}

{{- define "resource-manager.labels" -}}
app: {{ include "resource-manager.name" . }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* The selector of gardener-resource-manager, because the selector of a Deployment is immutable. */ -}}
{{- define "resource-manager.selector" -}}
app: {{ include "resource-manager.name" . }}
{{- end }}

{{- define "resource-manager.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "resource-manager.webhookConfigurations" -}}
{{ include "resource-manager.name" . }}{{ if ne .Values.mode "seed" }}-shoot{{ end }}
{{- end }}

{{- /* "true" if any webhook is enabled. */ -}}
{{- define "resource-manager.hasWebhooks" -}}
{{- $enabled := "" -}}
{{- range $name, $settings := get .Values.config "webhooks" | default dict -}}
{{- if get ($settings | default dict) "enabled" }}{{ $enabled = "true" }}{{ end -}}
{{- end -}}
{{ $enabled }}
{{- end }}

{{- /* "true" if the page is served. */ -}}
{{- define "resource-manager.hasUI" -}}
{{- if kindIs "map" (get (get .Values.config "server" | default dict) "ui") }}true{{ end -}}
{{- end }}

{{- define "resource-manager.priorityClassName" -}}
{{- .Values.priorityClass.name | default (ternary (include "resource-manager.name" .) "" .Values.priorityClass.create) -}}
{{- end }}

{{- /* The configuration in YAML: values.config, with unset fields filled in from the installation. */ -}}
{{- define "resource-manager.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "apiVersion" (get $config "apiVersion" | default "resourcemanager.config.gardener.cloud/v1alpha1") -}}
{{- $_ := set $config "kind" (get $config "kind" | default "ResourceManagerConfiguration") -}}

{{- $election := get $config "leaderElection" | default dict -}}
{{- $election = merge $election (dict "resourceNamespace" .Release.Namespace "resourceName" (include "resource-manager.name" .)) -}}
{{- if not (hasKey $election "leaderElect") }}{{ $_ := set $election "leaderElect" true }}{{ end -}}
{{- $_ := set $config "leaderElection" $election -}}

{{- $server := get $config "server" | default dict -}}
{{- $_ := set $server "healthProbes" (merge (get $server "healthProbes" | default dict) (dict "port" .Values.ports.health)) -}}
{{- $_ := set $server "metrics" (merge (get $server "metrics" | default dict) (dict "port" .Values.ports.metrics)) -}}
{{- if include "resource-manager.hasWebhooks" . -}}
{{- $webhooks := merge (get $server "webhooks" | default dict) (dict "port" .Values.ports.webhooks) -}}
{{- if .Values.webhooks.certificateSecret -}}
{{- $_ := set $webhooks "tls" (get $webhooks "tls" | default (dict "serverCertDir" "/etc/resource-manager/tls")) -}}
{{- else if not (get $webhooks "tls") -}}
{{- $name := include "resource-manager.name" . -}}
{{- $inNamespace := printf "%s.%s" $name .Release.Namespace -}}
{{- $_ := set $webhooks "tls" (dict "selfManaged" (dict
      "secretNamespace" .Release.Namespace
      "secretName" (printf "%s-webhooks" $name)
      "dnsNames" (list $name $inNamespace (printf "%s.svc" $inNamespace) (printf "%s.svc.cluster.local" $inNamespace))
      "webhookConfigurations" (list (include "resource-manager.webhookConfigurations" .)))) -}}
{{- end -}}
{{- $_ := set $server "webhooks" $webhooks -}}
{{- end -}}
{{- if include "resource-manager.hasUI" . -}}
{{- $_ := set $server "ui" (merge (get $server "ui") (dict "port" .Values.ports.ui)) -}}
{{- end -}}
{{- $_ := set $config "server" $server -}}

{{- $manual := get (get $config "webhooks" | default dict) "manualDeletionProtection" | default dict -}}
{{- if and (get $manual "enabled") (not (hasKey $manual "allowedUsers")) -}}
{{- $users := list -}}
{{- range list "gardener-operator" "gardenlet" (include "resource-manager.name" .) -}}
{{- $users = append $users (printf "system:serviceaccount:%s:%s" $.Release.Namespace .) -}}
{{- end -}}
{{- $_ := set $manual "allowedUsers" $users -}}
{{- end -}}

{{- if ne .Values.mode "seed" -}}
{{- $source := get $config "sourceClientConnection" | default dict -}}
{{- if not (hasKey $source "namespaces") }}{{ $_ := set $source "namespaces" (list .Release.Namespace) }}{{ end -}}
{{- $_ := set $config "sourceClientConnection" $source -}}
{{- $target := get $config "targetClientConnection" | default dict -}}
{{- $_ := set $config "targetClientConnection" (merge $target (dict "kubeconfig" (printf "%s/kubeconfig" .Values.target.mountPath))) -}}
{{- end -}}
{{ toYaml $config }}
{{- end }}
