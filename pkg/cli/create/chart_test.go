package create

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-k8s/trellis/pkg/cli/pack"
)

const chartObjects = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: elsewhere, namespace: other}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: zones.shop.example.org}
spec: {group: shop.example.org, scope: Cluster, names: {kind: Zone, plural: zones}}
---
apiVersion: shop.example.org/v1
kind: Zone
metadata: {name: north}
---
apiVersion: shop.example.org/v1
kind: Coupon
metadata: {name: welcome}
---
apiVersion: batch/v1
kind: Job
metadata: {name: prepare, annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}
---
apiVersion: v1
kind: Pod
metadata: {name: probe, annotations: {helm.sh/hook: "test, test-success"}}
---
apiVersion: v1
kind: Secret
metadata: {name: old, annotations: {helm.sh/hook: crd-install}}
`

func TestHooksAreLeftOutAndNamespacesFilledIn(t *testing.T) {
	read, err := pack.Parse("chart", []byte(chartObjects))
	if err != nil {
		t.Fatal(err)
	}
	documents, hooks := withoutHooks(read)
	if want := []string{"Job prepare (pre-install,pre-upgrade)", "Secret old (crd-install)"}; !slices.Equal(hooks, want) {
		t.Errorf("hooks %q, want %q", hooks, want)
	}
	setNamespaces(documents, "garden")
	var got []string
	for _, document := range documents {
		object := unstructured.Unstructured{Object: document.Object}
		got = append(got, object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName())
	}
	want := []string{
		"ConfigMap garden/settings", "ConfigMap other/elsewhere", "ClusterRole /reader", "CustomResourceDefinition /zones.shop.example.org",
		"Zone /north", "Coupon garden/welcome",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
