package integration

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// driftKind is a kind whose objects are changed by hand.
type driftKind struct {
	// manifest has NS for the namespace and NAME for the name.
	manifest string
	// owned changes a field of the manifest. added adds a container, item or key that is in no manifest. It is nil if
	// every possible addition would be left to others.
	owned, added func(object *unstructured.Unstructured)
}

// set returns an edit that sets a field.
func set(value any, path ...string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

// extend returns an edit that adds an item to a list.
func extend(item any, path ...string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		list, _, err := unstructured.NestedSlice(object.Object, path...)
		if err == nil {
			err = unstructured.SetNestedSlice(object.Object, append(list, item), path...)
		}
		if err != nil {
			panic(err)
		}
	}
}

// inFirst returns an edit of the first item of a list.
func inFirst(edit func(item map[string]any), path ...string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		list, _, err := unstructured.NestedSlice(object.Object, path...)
		if err != nil {
			panic(err)
		}
		if item, is := list[0].(map[string]any); is {
			edit(item)
		}
		if err := unstructured.SetNestedSlice(object.Object, list, path...); err != nil {
			panic(err)
		}
	}
}

func image(item map[string]any)  { item["image"] = "by-hand" }
func verbs(item map[string]any)  { item["verbs"] = []any{"get", "delete"} }
func column(item map[string]any) { item["deprecated"] = true }

// sidecar is a container that a user adds.
func sidecar() map[string]any { return map[string]any{"name": "by-hand", "image": "by-hand"} }

// podRunner returns a kind that runs pods. No node matches them.
func podRunner(kind, spec string) driftKind {
	return driftKind{
		manifest: "apiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: NAME, namespace: NS, MARKS}\nspec:\n  selector: {matchLabels: {app: NAME}}\n" +
			"  template: {metadata: {labels: {app: NAME}}, spec: {nodeSelector: {no: such}, containers: [{name: c, image: c}]}}\n" + spec,
		owned: inFirst(image, "spec", "template", "spec", "containers"),
		added: extend(sidecar(), "spec", "template", "spec", "containers"),
	}
}

// driftKinds are the kinds of the drift matrix.
func driftKinds() map[string]driftKind {
	rule := map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}
	role := driftKind{owned: inFirst(verbs, "rules"), added: extend(rule, "rules")}
	const rules = "rules: [{apiGroups: [\"\"], resources: [secrets], verbs: [get]}]\n"
	const rbac = "apiVersion: rbac.authorization.k8s.io/v1\nkind: "
	kinds := map[string]driftKind{
		"ConfigMap":   {"data: {key: value}\n", set("by-hand", "data", "key"), set("by-hand", "data", "more")},
		"Secret":      {"data: {key: dmFsdWU=}\n", set("eA==", "data", "key"), set("eA==", "data", "more")},
		"Deployment":  podRunner("Deployment", "  replicas: 1\n"),
		"StatefulSet": podRunner("StatefulSet", "  replicas: 1\n  serviceName: x\n"),
		"DaemonSet":   podRunner("DaemonSet", ""),
		"Role":        {rbac + "Role\nmetadata: {name: NAME, namespace: NS, MARKS}\n" + rules, role.owned, role.added},
		"ClusterRole": {rbac + "ClusterRole\nmetadata: {name: NS-NAME, MARKS}\n" + rules, role.owned, role.added},
		"RoleBinding": {
			rbac + "RoleBinding\nmetadata: {name: NAME, namespace: NS, MARKS}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}\n" +
				"subjects: [{kind: ServiceAccount, name: x, namespace: NS}]\n",
			inFirst(func(item map[string]any) { item["name"] = "by-hand" }, "subjects"),
			extend(map[string]any{"kind": "ServiceAccount", "name": "by-hand", "namespace": "default"}, "subjects"),
		},
		"ServiceAccount": {
			"automountServiceAccountToken: false\nimagePullSecrets: [{name: a}]\n",
			set(true, "automountServiceAccountToken"), nil, // any client may own a part of the lists
		},
		"Service": {
			"spec: {clusterIP: None, selector: {app: x}, ports: [{name: a, port: 80, targetPort: 8080}]}\n",
			inFirst(func(item map[string]any) { item["targetPort"] = int64(81) }, "spec", "ports"),
			extend(map[string]any{"name": "by-hand", "port": int64(82), "protocol": "TCP", "targetPort": int64(82)}, "spec", "ports"),
		},
	}
	for name, kind := range kinds {
		if !strings.HasPrefix(kind.manifest, "apiVersion") {
			kind.manifest = "apiVersion: v1\nkind: " + name + "\nmetadata: {name: NAME, namespace: NS, MARKS}\n" + kind.manifest
			kinds[name] = kind
		}
	}
	for name, kind := range furtherDriftKinds() {
		kinds[name] = kind
	}
	return kinds
}

func furtherDriftKinds() map[string]driftKind {
	return map[string]driftKind{
		"NetworkPolicy": {
			"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: NAME, namespace: NS, MARKS}\n" +
				"spec: {podSelector: {matchLabels: {app: x}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {}}]}]}\n",
			set("by-hand", "spec", "podSelector", "matchLabels", "app"), extend(map[string]any{}, "spec", "ingress"),
		},
		"CronJob": {
			"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: NAME, namespace: NS, MARKS}\nspec: {schedule: \"0 0 1 1 *\", jobTemplate: " +
				"{spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}}}\n",
			set("1 1 1 1 *", "spec", "schedule"),
			extend(sidecar(), "spec", "jobTemplate", "spec", "template", "spec", "containers"),
		},
		"ValidatingWebhookConfiguration": {
			"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: NS-NAME, MARKS}\nwebhooks: [" + hook("a") + "]\n",
			inFirst(func(item map[string]any) { item["timeoutSeconds"] = int64(7) }, "webhooks"),
			extend(map[string]any{
				"name": "b.example.org", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Ignore",
				"clientConfig": map[string]any{"url": "https://example.org"},
			}, "webhooks"),
		},
		"CustomResourceDefinition": {
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: twins.NAME.NS.example.org, MARKS}\n" +
				"spec: {group: NAME.NS.example.org, scope: Namespaced, names: {plural: twins, kind: Twin}, versions: [{name: v1, served: true, " +
				"storage: true, deprecated: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}\n",
			inFirst(column, "spec", "versions"), extend("byhand", "spec", "names", "shortNames"),
		},
		"Twin": {
			"apiVersion: NS.example.org/v1\nkind: Twin\nmetadata: {name: NAME, namespace: NS, MARKS}\nspec: {size: 1, parts: [{name: a}]}\n",
			set(int64(2), "spec", "size"), set("by-hand", "spec", "more"),
		},
	}
}

// hook returns a webhook that never matches.
func hook(name string) string {
	return "{name: " + name + ".example.org, sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Ignore, timeoutSeconds: 5, " +
		"clientConfig: {url: \"https://example.org\"}, namespaceSelector: {matchLabels: {no: such}}, " +
		"rules: [{apiGroups: [\"\"], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}"
}
