package cli

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
)

const heldConfigMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: held, namespace: $NS, finalizers: [example.org/hold]}
`

// TestDiffOfADeletion shows the prediction for the objects of a ManagedResource that is being deleted.
func TestDiffOfADeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliver(t, namespace, "shop", state.Ready, configMap+"---\n"+heldConfigMap)
	held := &corev1.ConfigMap{ObjectMeta: named(namespace, "held")}
	t.Cleanup(func() {
		release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		kit.Must(t, w.client.Patch(context.WithoutCancel(t.Context()), held, release))
	})
	kit.Must(t, w.client.Delete(t.Context(), managedResource(namespace, "shop")))
	w.eventually(t, 1, []string{"ManagedResource " + namespace + "/shop: 1 would wait", "… ConfigMap " + namespace + "/held: it is being deleted"},
		"diff", "shop", "-n", namespace)
}

const preservingDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: $NS, annotations: {resources.gardener.cloud/preserve-replicas: "true"}}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: shop, image: example.org/shop}]}}
`

// TestDiffOfACreation shows fields that are applied only on creation, and changes that are still waiting.
func TestDiffOfACreation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliverSuspended(t, namespace, "shop", configMap)
	mr := managedResource(namespace, "shop")
	kit.Change(t, w.client, mr, func() { mr.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: "database"}} })
	w.runCall(call{
		args: []string{"diff", "shop", "-n", namespace, "-f", "-"}, in: strings.ReplaceAll(configMap+"---\n"+preservingDeployment, "$NS", namespace),
	}).says(t, 1, "It is suspended", "the changes are waiting", "database", "+ Deployment "+namespace+"/shop", "+ replicas: 3")
}
