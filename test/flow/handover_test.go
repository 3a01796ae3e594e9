package flow

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestBundlesMoveBetweenFlows checks that a bundle moves from one flow to another and back without being deleted: when a
// seed becomes the garden, the operator adopts what gardenlet has deployed.
func TestBundlesMoveBetweenFlows(t *testing.T) {
	w := newWorld(t)
	key := flow.Key{Namespace: w.namespace, Name: "vpa"}
	bundle := flow.Bundle{Key: key, Objects: []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "settings"}, Data: map[string]string{"a": "b"}},
	}}
	labelled := bundle
	labelled.Labels, labelled.Spec.KeepObjects = map[string]string{"only": "in-the-seed"}, ptr.To(true)
	emit := func(name string, plan flow.Plan) flow.Result {
		t.Helper()
		emitter := &flow.Emitter{
			Reader: w.client, Uncached: w.client, Writer: w.client, FieldManager: name, Rules: flow.Rules{Scheme: w.scheme, Version: "v1"},
		}
		owner := flow.Owner{Flow: name, UID: "uid-of-one", Name: "one"}
		result, err := emitter.Emit(t.Context(), owner, plan)
		kit.Must(t, err)
		return result
	}
	read := func() *resourcesv1alpha1.ManagedResource {
		t.Helper()
		mr := &resourcesv1alpha1.ManagedResource{}
		kit.Must(t, w.client.Get(t.Context(), client.ObjectKey(key), mr))
		return mr
	}
	wanted := map[string]flow.Plan{"seed": {Bundles: []flow.Bundle{labelled}}, "garden": {Bundles: []flow.Bundle{bundle}}}
	release := flow.Plan{Tombstones: []flow.Tombstone{{Key: key, Release: flow.ReleaseBundle}}}
	emit("seed", wanted["seed"])
	first := read()
	first.Status.ObservedGeneration = first.Generation
	first.Status.Resources = []resourcesv1alpha1.ObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: "settings"}}
	first.Finalizers = []string{resourcesv1alpha1.Finalizer + "-test"}
	status := first.DeepCopy()
	kit.Must(t, w.client.Update(t.Context(), first))
	status.ResourceVersion = first.ResourceVersion
	kit.WriteStatus(t, w.client, status)
	for _, way := range [][2]string{{"seed", "garden"}, {"garden", "seed"}} {
		from, to := way[0], way[1]
		if problem := emit(to, wanted[to]).Problems[key]; problem == "" {
			t.Errorf("%s takes over a bundle that %s has not released", to, from)
		}
		emit(from, release)
		if result := emit(from, release); len(result.Written) > 0 {
			t.Errorf("%s releases it again", from)
		}
		emit(to, wanted[to])
		mr := read()
		if mr.UID != first.UID || mr.DeletionTimestamp != nil || mr.Labels[flow.LabelFlow] != to {
			t.Fatalf("%s → %s: %s, deleted %v, labels %v", from, to, mr.UID, mr.DeletionTimestamp, mr.Labels)
		}
		if isSeed := to == "seed"; (mr.Labels["only"] != "") != isSeed || (mr.Spec.KeepObjects != nil) != isSeed {
			t.Errorf("%s → %s: labels %v, spec %+v", from, to, mr.Labels, mr.Spec)
		}
		for range 2 {
			if result := emit(to, wanted[to]); len(result.Written)+len(result.Problems) > 0 {
				t.Errorf("%s is not settled: %v, %v", to, result.Written, result.Problems)
			}
		}
	}
	mr := read()
	mr.Finalizers = nil
	kit.Must(t, w.client.Update(t.Context(), mr))
}
