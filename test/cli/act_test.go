package cli

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
)

func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliver(t, namespace, "shop", state.Ready, configMap)
	w.run("suspend", "shop", "-n", namespace).says(t, 0, "managedresource "+namespace+"/shop: suspended")
	w.run("suspend", "shop", "-n", namespace).says(t, 0, "is already suspended")
	w.run("reconcile", "shop", "-n", namespace).says(t, 0, "is suspended and is not reconciled")
	w.run("wait", "shop", "-n", namespace).says(t, 1, "!is suspended")
	w.await(t, namespace, "shop", state.Suspended)
	w.edit(t, namespace, "settings", "red")
	w.run("diff", "shop", "-n", namespace).says(t, 1, "1 to change", "It is suspended", "~ ConfigMap "+namespace+"/settings", "- colour: red", "+ colour: blue")
	if colour := w.colour(t, namespace, "settings"); colour != "red" {
		t.Errorf("the colour is %q: it was corrected, or diff wrote it", colour)
	}
	w.run("resume", "--all", "-n", namespace, "--wait").says(t, 0, "resumed", "ready")
	if colour := w.colour(t, namespace, "settings"); colour != "blue" {
		t.Errorf("the ManagedResource is reported as ready, but the colour is still %q", colour)
	}
	w.run("resume", "shop", "-n", namespace).says(t, 0, "is not suspended")
	w.run("diff", "shop", "-n", namespace).says(t, 0, "1 unchanged")
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliver(t, namespace, "shop", state.Ready, configMap)
	w.run("reconcile", "-n", namespace).says(t, 2, "!specify ManagedResources by name")
	w.run("reconcile", "--all", "-n", namespace, "--wait").says(t, 0, "reconciliation requested", "ready")
	mr := &resourcesv1alpha1.ManagedResource{}
	kit.Must(t, w.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "shop"}, mr))
	if operation, asked := mr.Annotations[resourcesv1alpha1.AnnotationOperation]; asked {
		t.Errorf("the operation %q was not processed, although the ManagedResource is ready", operation)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run("wait", "webshop-base", "-n", "garden").says(t, 0, "managedresource garden/webshop-base: ready")
	w.run("wait", "webshop-sale", "-n", "garden", "--for", "applied").says(t, 0, "applied")
	w.await(t, "garden", "webshop-sale", state.Unhealthy)
	w.run("wait", "webshop-sale", "-n", "garden", "--timeout", "1s").says(t, 1, "!not ready within 1s", "!garden/webshop-sale is Unhealthy", "!kubectl mr why")
	w.run("wait", "webshop-sale", "-n", "garden", "--for", "beauty").says(t, 2, "!invalid --for")
	w.run("wait", "nothing", "-n", "garden", "--for", "deleted").says(t, 0, "managedresource garden/nothing: deleted")
	w.run("wait", "-n", "kube-public").says(t, 2, "!no ManagedResource matches")
}

// TestWaitForWhatIsGoing deletes the ManagedResource right after the command has read it.
func TestWaitForWhatIsGoing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, args := range [][]string{{"shop"}, {}} {
		namespace := w.namespace(t)
		w.deliver(t, namespace, "shop", state.Ready, configMap)
		deletes := sync.OnceFunc(func() { w.forget(t, namespace, "shop") })
		w.runCall(call{args: append([]string{"wait", "-n", namespace, "--for", "deleted"}, args...), wrap: func(config *rest.Config) *rest.Config {
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
					response, err := next.RoundTrip(r)
					if strings.Contains(r.URL.Path, "/managedresources") {
						deletes()
					}
					return response, err
				})
			})
			return config
		}}).says(t, 0, "managedresource "+namespace+"/shop: deleted")
	}
}

// TestDiffPredicts checks that the result of applying manifests matches the prediction of diff: changes, creations and deletions.
func TestDiffPredicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	const secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: password, namespace: $NS}\nstringData: {password: %s}\n"
	const other = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: $NS}\n"
	of := func(parts ...string) string { return strings.ReplaceAll(strings.Join(parts, ""), "$NS", namespace) }
	first := of(configMap, strings.Replace(secret, "%s", "hunter2", 1), strings.Replace(other, "%s", "old", 1))
	second := of(strings.Replace(configMap, "blue", "green", 1), strings.Replace(secret, "%s", "hunter3", 1), strings.Replace(other, "%s", "new", 1))
	w.runCall(call{args: []string{"diff", "shop", "-n", namespace, "-f", "-"}, in: first}).says(t, 1, "3 to create", "+ ConfigMap "+namespace+"/settings", "+ colour: blue")
	w.deliver(t, namespace, "shop", state.Ready, first)
	w.runCall(call{args: []string{"diff", "shop", "-n", namespace, "-f", "-"}, in: first}).says(t, 0, "3 unchanged")

	out := w.runCall(call{args: []string{"diff", "shop", "-n", namespace, "-f", "-"}, in: second})
	out.says(t, 1, "1 to create, 2 to change, 1 to delete", "+ ConfigMap "+namespace+"/new", "- ConfigMap "+namespace+"/old: it is no longer wanted",
		"- colour: blue", "+ colour: green", "- password: '*** (before)'", "+ password: '*** (after)'")
	for _, hidden := range []string{"hunter", "aHVudGVy"} {
		if strings.Contains(out.out, hidden) {
			t.Errorf("%q is shown:\n%s", hidden, out.out)
		}
	}
	w.runCall(call{args: []string{"diff", "shop", "-n", namespace, "-f", "-", "-o", "json"}, in: second}).says(t, 1, `"verb": "delete"`)
	w.runCall(call{args: []string{"diff", "shop", "-n", namespace, "-f", "-", "-o", "name"}, in: second}).says(t, 1, "Secret "+namespace+"/password\n")
	if colour := w.colour(t, namespace, "settings"); colour != "blue" {
		t.Fatalf("the colour is %q: diff wrote it", colour)
	}
	revision := w.secretOf(t, namespace, "shop")
	w.runCall(call{args: []string{"create", "shop", "-n", namespace, "-f", "-", "--wait"}, in: second}).says(t, 0, "changed", "ready")
	kit.Eventually(t, "the result matches the prediction of diff", func() string {
		gone := w.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "old"}, &corev1.ConfigMap{})
		if colour := w.colour(t, namespace, "settings"); colour != "green" || gone == nil {
			return "the colour is " + colour
		}
		return kit.TextOf(w.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "new"}, &corev1.ConfigMap{}))
	})
	w.run("diff", "shop", "-n", namespace).says(t, 0, "3 unchanged")
	w.run("diff", "shop", "-n", namespace, "--set", revision, "--brief").says(t, 1, "1 to create, 2 to change, 1 to delete")
	w.run("decode", "shop", "-n", namespace, "--set", revision).says(t, 0, "colour: blue")
}

// secretOf returns the name of the Secret of a ManagedResource.
func (w *world) secretOf(t *testing.T, namespace, name string) string {
	t.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	kit.Must(t, w.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, mr))
	return mr.Spec.SecretRefs[0].Name
}

// TestDiffTakesOver shows the result for an object that another client applied: fields that are in no manifest are removed.
func TestDiffTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	before := &corev1.ConfigMap{ObjectMeta: named(namespace, "settings"), Data: map[string]string{"colour": "red", "size": "large"}}
	kit.Must(t, w.client.Create(t.Context(), before, fieldOwner("helm")))
	manifests := strings.ReplaceAll(configMap, "$NS", namespace)
	w.runCall(call{args: []string{"diff", "shop", "-n", namespace, "-f", "-"}, in: manifests}).says(t, 1, "1 to change", "- colour: red", "- size: large", "+ colour: blue")
	w.deliver(t, namespace, "shop", state.Ready, manifests)
	after := &corev1.ConfigMap{}
	kit.Must(t, w.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "settings"}, after))
	if len(after.Data) != 1 || after.Data["colour"] != "blue" {
		t.Errorf("the result is %v, which diff did not predict", after.Data)
	}
}

// TestDiffPreserves shows that fields that are left to others from now on are unchanged. The resource-manager gives up these fields
// before it applies the rest.
func TestDiffPreserves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: $NS, annotations: {$ANNOTATIONS}}
spec:
  replicas: $REPLICAS
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: main, image: "registry.example/main:$VERSION"}]}
`
	of := func(annotations, replicas, version string) string {
		return strings.NewReplacer("$NS", namespace, "$ANNOTATIONS", annotations, "$REPLICAS", replicas, "$VERSION", version).Replace(deployment)
	}
	w.deliver(t, namespace, "shop", state.Ready, of("", "1", "1"))
	second := of(resourcesv1alpha1.AnnotationPreserveReplicas+`: "true"`, "3", "2")
	out := w.runCall(call{args: []string{"diff", "shop", "-n", namespace, "-f", "-"}, in: second})
	out.says(t, 1, "1 to change", "- - image: registry.example/main:1", "+ - image: registry.example/main:2", "+ resources.gardener.cloud/preserve-replicas")
	if strings.Contains(out.out, "replicas: 3") || strings.Contains(out.out, "- replicas") {
		t.Errorf("the output predicts a change of the replicas:\n%s", out.out)
	}
	w.runCall(call{args: []string{"create", "shop", "-n", namespace, "-f", "-", "--wait"}, in: second}).says(t, 0, "ready")
	after := &appsv1.Deployment{}
	kit.Must(t, w.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "shop"}, after))
	if *after.Spec.Replicas != 1 || after.Spec.Template.Spec.Containers[0].Image != "registry.example/main:2" {
		t.Errorf("the Deployment has %d replicas of %s", *after.Spec.Replicas, after.Spec.Template.Spec.Containers[0].Image)
	}
}

// TestDiffOfNewKinds shows objects whose namespace and kind are defined by the same manifests.
func TestDiffOfNewKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.runCall(call{args: []string{"diff", "shop", "-n", namespace, "-f", "-", "--brief"}, in: strings.ReplaceAll(newKind, "$NS", namespace)}).says(t, 1,
		"4 to create", "+ Namespace "+namespace+"-new", "+ ConfigMap "+namespace+"-new/settings", "+ CustomResourceDefinition", "+ Gadget "+namespace+"-new/one")
}

const newKind = `apiVersion: v1
kind: Namespace
metadata: {name: $NS-new}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: $NS-new}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.cli.example.org}
spec:
  group: cli.example.org
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: cli.example.org/v1
kind: Gadget
metadata: {name: one, namespace: $NS-new}
`

func TestDiff_ReportsFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	diff := func(manifests string) outcome {
		return w.runCall(call{args: []string{"diff", "shop", "-n", namespace, "-f", "-"}, in: strings.ReplaceAll(manifests, "$NS", namespace)})
	}
	diff(strings.Replace(configMap, "name: settings", "name: Settings", 1)).says(t, 1, "1 would fail", "! ConfigMap "+namespace+"/Settings", "a lowercase RFC 1123 subdomain")
	diff("apiVersion: example.org/v9\nkind: Thing\nmetadata: {name: x}\n").says(t, 1, "! Thing default/x", "does not serve this kind")
	diff("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: storefront, namespace: webshop}\n").says(t, 1, "belongs to ManagedResource garden/webshop-base")
	diff("kind: ConfigMap\n").says(t, 2, "!it needs apiVersion, kind and metadata.name")
	diff("a: [\n").says(t, 2, "!it is not valid YAML")
	w.run("diff", "-n", "garden").says(t, 0, "!Nothing would change in any of the ")
	w.run("diff", "-n", namespace, "-f", "-").says(t, 2, "!specify exactly one ManagedResource")
}
