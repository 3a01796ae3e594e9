package flow

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	example "github.com/trellis-k8s/trellis/examples/flow"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/manifestsecret"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestSite runs the example flow, with the resource-manager as a process, through the life cycle of a site.
func TestSite(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.cp.Kubeconfig(), []string{w.namespace}, "controllers: {garbageCollector: {enabled: true}}")
	requests, stop := w.startFlow("v1")

	// A missing declaration blocks the bundles that need it, and is a user error.
	w.declare(map[string]string{"message": "hello"})
	w.eventuallyReported("Failed", "ERR_CONFIGURATION_PROBLEM")
	kit.EventuallyTrue(t, "the app does not need the network's data", func() bool { return w.mr("site-app") != nil })
	if w.mr("site-network") != nil || w.mr("site-settings") != nil {
		t.Error("a held bundle was created")
	}

	w.change(map[string]string{"message": "hello", "type": "local", "region": "here", "zones": "a"})
	w.eventuallyReported("Processing", "Starting Reconciliation of the site")
	kit.EventuallyTrue(t, "the network is requested", func() bool { return w.network() != nil })
	if w.mr("site-settings") != nil {
		t.Error("the settings were emitted before the network's addresses are known")
	}
	w.answer("10.0.0.0/16")
	w.eventuallyData("site-settings", "nodes", "10.0.0.0/16")
	w.eventuallyData("site-app", "message", "hello")
	w.eventuallyReported("Succeeded", `"progress":100`)

	// One changed input: two writes for the bundle, and those of the report.
	quiet(t, requests)
	requests.Forget()
	w.change(map[string]string{"message": "hello again", "type": "local", "region": "here", "zones": "a"})
	w.eventuallyData("site-app", "message", "hello again")
	w.eventuallyReported("Succeeded", `"progress":100`)
	quiet(t, requests)
	emitted := 0
	for _, write := range writes(requests) {
		if !strings.HasSuffix(write, "/configmaps/site") {
			emitted++
		}
	}
	if emitted != 2 {
		t.Errorf("a changed input of one bundle took %d writes: %v", emitted, writes(requests))
	}

	// The settings stay unchanged until the extension has responded to the new zones: review 11.
	before := w.mr("site-settings").Generation
	w.change(map[string]string{"message": "hello again", "type": "local", "region": "here", "zones": "a,b"})
	kit.EventuallyTrue(t, "the network has the new zones", func() bool {
		return strings.Contains(string(must(w.network().MarshalJSON())), "a,b")
	})
	w.eventuallyReported("Processing", "site-settings")
	if got := w.mr("site-settings").Generation; got != before {
		t.Errorf("the settings were emitted from the old addresses: the generation was %d and is %d", before, got)
	}
	w.answer("10.0.0.0/16", "10.1.0.0/16")
	w.eventuallyData("site-settings", "nodes", "10.0.0.0/16,10.1.0.0/16")
	w.eventuallyReported("Succeeded", `"progress":100`)

	// At rest nothing is sent, and a restart writes nothing.
	quiet(t, requests)
	stop()
	requests, stop = w.startFlow("v1")
	quiet(t, requests)
	if sent := writes(requests); len(sent) > 0 {
		t.Errorf("a restart wrote: %v", sent)
	}
	requests.Forget()
	stop()
	w.end()
}

// end deletes a site with content that users have left, and checks the order.
func (w *world) end() {
	w.Helper()
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: "content", Labels: map[string]string{example.LabelContent: "site"}, Finalizers: []string{"example.org/stays"},
	}}
	kit.Must(w, w.client.Create(w.Context(), content))
	site := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "site"}}
	kit.Must(w, w.client.Delete(w.Context(), site))
	_, stop := w.startFlow("v1")
	defer stop()

	w.eventuallyReported("Processing", "Starting Deletion of the site")
	kit.EventuallyTrue(w, "the content is being deleted", func() bool {
		return w.get(content, "content") && content.DeletionTimestamp != nil
	})
	for _, name := range []string{"site-app", "site-settings", "site-network"} {
		if mr := w.mr(name); mr == nil || mr.DeletionTimestamp != nil {
			w.Errorf("%s is deleted before the content of the site", name)
		}
	}
	// A finalizer keeps the network's object until the test removes it. By then, the flow must have confirmed the
	// deletion.
	network := w.network()
	kit.Change(w, w.client, network, func() { network.SetFinalizers([]string{"example.org/stays"}) })
	kit.Change(w, w.client, content, func() { content.Finalizers = nil })
	kit.EventuallyTrue(w, "the network is being deleted", func() bool { return w.network().GetDeletionTimestamp() != nil })
	if w.network().GetAnnotations()[flow.AnnotationConfirmDeletion] != "true" {
		w.Error("the network is deleted without the confirmation")
	}
	if w.mr("site-app") != nil || w.mr("site-settings") != nil {
		w.Error("the network is deleted before the bundles that need it")
	}
	network = w.network()
	kit.Change(w, w.client, network, func() { network.SetFinalizers(nil) })
	kit.EventuallyTrue(w, "the site is deleted", func() bool { return !w.get(&corev1.ConfigMap{}, "site") })
	left, err := flow.Remaining(always(w.T), w.client, flow.Owner{Flow: example.FlowName, UID: site.UID})
	if err == nil && len(left) > 0 {
		w.Errorf("the deletion left %v", left)
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// Test deletes a Secret of a bundle, like a garbage collector that ran too early.
func TestSecretsThatAreGoneAreCreatedAgain(t *testing.T) {
	w := newWorld(t)
	_, _ = w.startFlow("v1")
	w.declare(map[string]string{"message": "hello"})
	kit.EventuallyTrue(t, "the app is emitted", func() bool { return w.mr("site-app") != nil })
	mr := w.mr("site-app")
	name := mr.Spec.SecretRefs[0].Name
	for range 3 {
		kit.Must(t, w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}))
		kit.EventuallyTrue(t, "the Secret exists again", func() bool { return w.get(&corev1.Secret{}, name) })
	}
	if after := w.mr("site-app"); after.Generation != mr.Generation {
		t.Errorf("the ManagedResource was changed: the generation was %d and is %d", mr.Generation, after.Generation)
	}
}

// TestSiteOfTheSameName recreates a site whose Secrets the garbage collector has not deleted yet.
func TestSiteOfTheSameName(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.cp.Kubeconfig(), []string{w.namespace}, "controllers: {garbageCollector: {enabled: false}}")
	_, _ = w.startFlow("v1")
	w.declare(map[string]string{"message": "hello"})
	kit.EventuallyTrue(t, "the app is emitted", func() bool { return w.mr("site-app") != nil })
	name := w.mr("site-app").Spec.SecretRefs[0].Name
	before := &corev1.Secret{}
	if !w.get(before, name) {
		t.Fatal("the Secret of the app does not exist")
	}

	kit.Must(t, w.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "site"}}))
	kit.EventuallyTrue(t, "the site is deleted", func() bool { return !w.get(&corev1.ConfigMap{}, "site") })
	w.declare(map[string]string{"message": "hello"})
	kit.EventuallyTrue(t, "the app of the second site is emitted", func() bool { return w.mr("site-app") != nil })
	after := &corev1.Secret{}
	if !w.get(after, name) || after.UID != before.UID {
		t.Fatalf("the second site does not use the Secret %s of the first one", name)
	}
	if after.Labels[flow.LabelOwner] == before.Labels[flow.LabelOwner] || !reflect.DeepEqual(after.Data, before.Data) {
		t.Errorf("the Secret has the labels %v and %d keys. Before, it had %v and %d", after.Labels, len(after.Data), before.Labels, len(before.Data))
	}
}

// Test has a ManagedResource of another flow in the way.
func TestForeignManagedResourcesAreNotTouched(t *testing.T) {
	w := newWorld(t)
	foreign := w.mr("site-app")
	if foreign != nil {
		t.Fatal("the namespace is not empty")
	}
	_, other, err := flow.Render(flow.Owner{Flow: "garden", UID: "1", Name: "garden"}, flow.Bundle{
		Key:     flow.Key{Namespace: w.namespace, Name: "site-app"},
		Objects: []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "x"}}},
	}, w.scheme)
	kit.Must(t, err)
	kit.Must(t, w.client.Create(t.Context(), other))
	_, _ = w.startFlow("v1")
	w.declare(map[string]string{"message": "hello"})
	w.eventuallyReported("Failed", "belongs to garden")
	if after := w.mr("site-app"); after.ResourceVersion != other.ResourceVersion {
		t.Error("the ManagedResource of another flow was written")
	}
}

// TestLargeBundle emits a bundle that is larger than a Secret can be.
func TestLargeBundle(t *testing.T) {
	w := newWorld(t)
	owner := flow.Owner{Flow: "large", UID: "1", Namespace: w.namespace, Name: "large"}
	emitter := &flow.Emitter{
		Reader: w.client, Uncached: w.client, Writer: w.client, FieldManager: "large-flow", Rules: flow.Rules{Scheme: w.scheme, Version: "v1"},
	}
	var plan flow.Plan
	bundle := flow.Bundle{Key: flow.Key{Namespace: w.namespace, Name: "large"}}
	for _, name := range []string{"a", "b", "c"} {
		bundle.Objects = append(bundle.Objects, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Data: map[string]string{"noise": noise(name, 700_000)},
		})
	}
	plan.Bundles = []flow.Bundle{bundle}
	for _, want := range []int{1, 0} {
		result, err := emitter.Emit(t.Context(), owner, plan)
		kit.Must(t, err)
		if len(result.Written) != want {
			t.Errorf("the pass wrote %v, want %d bundles", result.Written, want)
		}
	}
	objects := 0
	for _, reference := range w.mr("large").Spec.SecretRefs {
		secret := &corev1.Secret{}
		if !w.get(secret, reference.Name) {
			t.Fatalf("Secret %s does not exist", reference.Name)
		}
		read, err := manifestsecret.Read(secret, 1<<26)
		kit.Must(t, err)
		objects += len(read)
	}
	if count := len(w.mr("large").Spec.SecretRefs); count < 2 || objects != 3 {
		t.Errorf("%d objects in %d Secrets", objects, count)
	}
}
