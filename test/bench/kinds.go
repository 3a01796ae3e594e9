package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a kind of object and the content of its objects in addition to their metadata.
type kind struct {
	group, version, name, plural string
	content                      func(name string, revision int) map[string]any
}

func (k kind) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: k.plural}
}

func (k kind) kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.name}
}

func (k kind) groupVersion() string { return k.resource().GroupVersion().String() }

var configMapKind = kind{"", "v1", "ConfigMap", "configmaps", configMap}

// kinds are the kinds of a ManagedResource's objects, in turn, until it has enough objects.
var kinds = []kind{
	configMapKind, configMapKind, configMapKind, configMapKind,
	{"", "v1", "Secret", "secrets", secret},
	{"", "v1", "ServiceAccount", "serviceaccounts", serviceAccount},
	{"rbac.authorization.k8s.io", "v1", "Role", "roles", role},
	{"rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", roleBinding},
	{"", "v1", "Service", "services", service},
	{"apps", "v1", "Deployment", "deployments", deployment},
}

// distinctKinds returns each kind once.
func distinctKinds() []kind {
	var distinct []kind
	seen := map[string]bool{}
	for _, kind := range kinds {
		if !seen[kind.name] {
			seen[kind.name] = true
			distinct = append(distinct, kind)
		}
	}
	return distinct
}

// revisionKey is the key of a ConfigMap that holds the revision. The drift phase changes it.
const revisionKey = "revision"

func configMap(name string, revision int) map[string]any {
	return map[string]any{"data": map[string]any{
		revisionKey:   fmt.Sprint(revision),
		"config.yaml": "name: " + name + "\n" + strings.Repeat("option: some value that a user configured\n", 10),
	}}
}

func secret(name string, revision int) map[string]any {
	return map[string]any{
		"type":       "Opaque",
		"stringData": map[string]any{"username": name, "password": fmt.Sprintf("correct horse battery staple %d", revision)},
	}
}

func serviceAccount(_ string, revision int) map[string]any {
	return map[string]any{"automountServiceAccountToken": revision%2 == 0}
}

func role(name string, revision int) map[string]any {
	return map[string]any{"rules": []any{
		map[string]any{
			"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get", "watch"},
			"resourceNames": []any{fmt.Sprintf("%s-%d", name, revision)},
		},
		map[string]any{"apiGroups": []any{""}, "resources": []any{"events"}, "verbs": []any{"create", "patch"}},
	}}
}

func roleBinding(name string, revision int) map[string]any {
	return map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": fmt.Sprintf("%s-%d", name, revision), "namespace": "default"}},
	}
}

func service(name string, revision int) map[string]any {
	return map[string]any{"spec": map[string]any{
		"selector": map[string]any{"app": name},
		"ports":    []any{map[string]any{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8000 + revision}},
	}}
}

// deployment has no replicas: Pods would be the work of components that this control plane lacks.
func deployment(name string, revision int) map[string]any {
	labels := map[string]any{"app": name}
	container := map[string]any{
		"name": "app", "image": fmt.Sprintf("registry.example.com/app:v1.0.%d", revision),
		"args":           []any{"--listen=:8080", "--log-level=info"},
		"env":            []any{map[string]any{"name": "HOME", "value": "/home/app"}},
		"ports":          []any{map[string]any{"name": "http", "containerPort": 8080, "protocol": "TCP"}},
		"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/readyz", "port": "http"}},
		"resources": map[string]any{
			"requests": map[string]any{"cpu": "100m", "memory": "64Mi"}, "limits": map[string]any{"memory": "128Mi"},
		},
	}
	return map[string]any{"spec": map[string]any{
		"replicas": 0,
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{container}},
		},
	}}
}
