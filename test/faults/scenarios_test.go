package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Delays of pruning: soon where no object moves. Where one does, the other ManagedResource needs enough time
// to claim it, on any machine and after any fault.
const (
	soon = 100 * time.Millisecond
	late = 15 * time.Second
)

// changes are the scenarios of changed manifests of ManagedResources. No other controller acts on their objects,
// so that the calls are the same in every run.
func changes() []scenario {
	all := []string{
		configMap("one", "1"), configMap("two", "1"), secret("secret", "1"), serviceAccount("account"), role("role", "get"),
		roleBinding("binding"), service("service", 80), definition, coupon("coupon", 10),
	}
	changed := []string{
		configMap("one", "2"), configMap("two", "1"), secret("secret", "2"), serviceAccount("account"), role("role", "list"),
		roleBinding("binding"), service("service", 81), definition, coupon("coupon", 20), configMap("three", "1"),
	}
	// The first ManagedResource by name is changed first: it loses objects before the second one gets them, or the
	// other way round.
	before := []string{configMap("one", "1"), secret("moved", "1"), configMap("moved", "1")}
	other, left := []string{configMap("two", "1")}, []string{configMap("one", "1")}
	moved := []string{configMap("two", "1"), secret("moved", "1"), configMap("moved", "2")}
	immutable := func(value string) string { return configMap("fixed", value) + "immutable: true\n" }
	annotated := func(name, annotation string) string {
		return strings.Replace(configMap(name, "1"), "metadata:\n", "metadata:\n  annotations: {"+annotation+"}\n", 1)
	}
	kept := annotated("kept", resourcesv1alpha1.AnnotationKeepObject+": 'true'")
	ignored := annotated("released", resourcesv1alpha1.AnnotationMode+": "+resourcesv1alpha1.ModeIgnore)
	return []scenario{
		{
			name:  "create",
			given: state{"z": {configMap("other", "1")}}, then: state{"a": all, "z": {configMap("other", "1")}}, pruneDelay: soon,
		},
		{name: "update", given: state{"a": all}, then: state{"a": changed}, pruneDelay: soon},
		{name: "restart", given: state{"a": all}, then: state{"a": changed}, pruneDelay: soon, stopped: true},
		{name: "shrink", given: state{"a": all}, then: state{"a": {configMap("one", "1"), serviceAccount("account")}}, pruneDelay: soon},
		{name: "move", given: state{"a": before, "b": other}, then: state{"a": left, "b": moved}, pruneDelay: late},
		{name: "move-back", given: state{"a": other, "b": before}, then: state{"a": moved, "b": left}, pruneDelay: late},
		{name: "swap", given: state{"a": before, "b": {configMap("two", "1"), secret("other", "1")}},
			then: state{"a": {configMap("one", "1"), secret("other", "2")}, "b": moved}, pruneDelay: late},
		{name: "flap", given: state{"a": before, "b": other}, through: state{"a": left, "b": moved}, then: state{"a": before, "b": other}, pruneDelay: late},
		{name: "give-up", given: state{"a": before, "b": other}, through: state{"a": left, "b": moved}, then: state{"a": left, "b": other}, pruneDelay: soon},
		{
			// Both states have the same fields, so that only values show which of them was applied.
			name: "revert", given: state{"a": {role("role", "get"), service("service", 80)}},
			through: state{"a": {role("role", "list"), service("service", 81)}}, then: state{"a": {role("role", "get"), service("service", 80)}}, pruneDelay: soon,
		},
		{name: "inherit", given: state{"a": before, "b": other}, then: state{"b": slices.Concat(left, moved)}, pruneDelay: late},
		{
			name:  "keep",
			given: state{"a": {configMap("one", "1"), kept, configMap("released", "1")}}, then: state{"a": {configMap("one", "1"), ignored}},
			left: []string{"kept"}, released: []string{"released"}, pruneDelay: soon,
		},
		{
			name:  "depend",
			given: state{"z": {configMap("other", "1")}},
			then:  state{"a": {configMap("one", "1")}, "b": {configMap("two", "1")}, "z": {configMap("other", "1")}}, dependencies: map[string]string{"a": "b"}, pruneDelay: soon,
		},
		{
			name:  "class",
			given: state{"a": {configMap("one", "1"), secret("secret", "1")}, "b": {configMap("two", "1")}},
			then:  state{"a": {configMap("one", "1"), secret("secret", "1")}, "b": {configMap("two", "1")}}, reclassed: []string{"a"},
			replaced: []string{"one", "secret"}, pruneDelay: soon,
		},
		{
			name:  "take-over",
			given: state{"z": {configMap("other", "1")}}, then: state{"a": {configMap("one", "1"), service("service", 80)}, "z": {configMap("other", "1")}},
			existing: []string{configMap("one", "0"), service("service", 79)}, pruneDelay: soon,
		},
		{
			name:  "replace",
			given: state{"a": {immutable("1"), configMap("one", "1")}}, then: state{"a": {immutable("2"), configMap("one", "1")}},
			replaced: []string{"fixed"}, pruneDelay: soon,
		},
		{name: "delete", given: state{"a": all, "b": {configMap("three", "1")}}, then: state{"b": {configMap("three", "1")}}, pruneDelay: soon},
	}
}

func manifest(apiVersion, kind, name, rest string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n  namespace: NAMESPACE\n%s\n", apiVersion, kind, name, rest)
}

func configMap(name, value string) string {
	return manifest("v1", "ConfigMap", name, "data: {key: '"+value+"', only-in-"+value+": x}")
}

func secret(name, value string) string {
	return manifest("v1", "Secret", name, "type: Opaque\nstringData: {key: '"+value+"'}")
}

func serviceAccount(name string) string {
	return manifest("v1", "ServiceAccount", name, "automountServiceAccountToken: false")
}

func role(name, verb string) string {
	return manifest("rbac.authorization.k8s.io/v1", "Role", name, "rules:\n- {apiGroups: [''], resources: [configmaps], verbs: ["+verb+"]}")
}

func roleBinding(name string) string {
	return manifest("rbac.authorization.k8s.io/v1", "RoleBinding", name,
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: role}\n"+
			"subjects:\n- {kind: ServiceAccount, name: account, namespace: NAMESPACE}")
}

func service(name string, port int) string {
	return manifest("v1", "Service", name, fmt.Sprintf("spec:\n  selector: {app: none}\n  ports:\n  - {name: http, port: %d, protocol: TCP}", port))
}

func coupon(name string, percent int) string {
	return manifest("NAMESPACE.example.org/v1", "Coupon", name, fmt.Sprintf("spec: {percent: %d}", percent))
}

var definition = strings.Replace(manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "coupons.NAMESPACE.example.org", `spec:
  group: NAMESPACE.example.org
  names: {kind: Coupon, plural: coupons, singular: coupon, listKind: CouponList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}`), "  namespace: NAMESPACE\n", "", 1)
