{{- /* The value of a field of the configuration, in JSON. Takes a list: configuration, path. */ -}}
{{- define "resource-manager.at" -}}
{{- $value := index . 0 -}}
{{- range $key := splitList "." (index . 1) -}}
{{- if kindIs "map" $value }}{{ $value = get $value $key }}{{ else }}{{ $value = "" }}{{ end -}}
{{- end -}}
{{ toJson $value }}
{{- end }}

{{- /*
The rights that the configuration needs in a cluster: {"cluster": [rules], "namespaced": {namespace: [rules]}}, in JSON. Reads
files/rights.yaml, as the package pkg/rbac does. Takes a list: the root, "source" or "target".
*/ -}}
{{- define "resource-manager.rights" -}}
{{- $root := index . 0 -}}
{{- $cluster := index . 1 -}}
{{- $config := include "resource-manager.config" $root | fromYaml -}}
{{- $everywhere := list -}}
{{- $namespaced := dict -}}
{{- range $row := $root.Files.Get "files/rights.yaml" | fromYamlArray -}}
{{- $wanted := eq $row.cluster $cluster -}}
{{- range $condition := $row.when -}}
{{- $value := include "resource-manager.at" (list $config $condition.path) | mustFromJson -}}
{{- if or (not $value) (and $condition.in (not (has $value $condition.in))) }}{{ $wanted = false }}{{ end -}}
{{- end -}}
{{- if $wanted -}}
{{- $rules := list -}}
{{- range $rule := $row.rules -}}
{{- if $rule.resourceNamesFrom -}}
{{- $names := include "resource-manager.at" (list $config $rule.resourceNamesFrom) | mustFromJson -}}
{{- $rule = merge (omit $rule "resourceNamesFrom") (dict "resourceNames" (kindIs "string" $names | ternary (list $names) $names)) -}}
{{- end -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- $where := $row.namespaces | default dict -}}
{{- $namespaces := list -}}
{{- range $path := $where.from -}}
{{- if not $namespaces -}}
{{- $names := include "resource-manager.at" (list $config $path) | mustFromJson -}}
{{- if $names }}{{ $namespaces = kindIs "string" $names | ternary (list $names) $names }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if not $namespaces }}{{ $namespaces = $where.names | default list }}{{ end -}}
{{- if not $namespaces }}{{ $everywhere = concat $everywhere $rules }}{{ end -}}
{{- range $namespace := $namespaces -}}
{{- $_ := set $namespaced $namespace (concat (get $namespaced $namespace | default list) $rules) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ dict "cluster" $everywhere "namespaced" $namespaced | toJson }}
{{- end }}

{{- /*
Roles and their bindings. Takes a dict: root, name (a suffix), rights, and subject.
*/ -}}
{{- define "resource-manager.roles" -}}
{{- $root := .root -}}
{{- $name := printf "%s:%s" (include "resource-manager.clusterName" .root) .name -}}
{{- $subject := .subject -}}
{{- if .rights.cluster }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels: {{- include "resource-manager.labels" $root | nindent 4 }}
rules: {{- toYaml .rights.cluster | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels: {{- include "resource-manager.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects: {{- toYaml (list $subject) | nindent 0 }}
{{- end }}
{{- range $namespace, $rules := .rights.namespaced }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{- include "resource-manager.labels" $root | nindent 4 }}
rules: {{- toYaml $rules | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{- include "resource-manager.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
subjects: {{- toYaml (list $subject) | nindent 0 }}
{{- end }}
{{- end }}
