package manualdeletion

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestNothingIsDeletedByHand is a single test because webhooks are registered for a whole cluster.
func TestNothingIsDeletedByHand(t *testing.T) {
	f := newFixture(t)
	for _, part := range []struct {
		name string
		test func(*fixture)
	}{
		{"a person has to confirm", (*fixture).personConfirms},
		{"a collection is denied", (*fixture).collectionIsDenied},
		{"a flow need not confirm", (*fixture).flowNeedNotConfirm},
		{"the garbage collector need not confirm", (*fixture).garbageCollectorNeedNotConfirm},
		{"no replica responds", (*fixture).noReplicaResponds},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			own := *f
			own.T = t
			part.test(&own)
		}) {
			return
		}
	}
}

// wantDenied checks that a person cannot delete an object, and that the answer contains the command that allows it.
func (f *fixture) wantDenied(object client.Object, command string) {
	f.Helper()
	for _, options := range [][]client.DeleteOption{{client.DryRunAll}, nil} {
		err := f.jane.Delete(f.Context(), object, options...)
		if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), command) {
			f.Errorf("the answer to the deletion of %s with %v is %v", object.GetName(), options, err)
		}
	}
}

func (f *fixture) confirm(object client.Object) {
	f.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`))
	kit.Must(f, f.jane.Patch(f.Context(), object, patch))
}

func (f *fixture) personConfirms() {
	namespace := f.namespace()
	const annotation = " confirmation.gardener.cloud/deletion=true"
	for command, object := range map[string]client.Object{
		"kubectl annotate managedresource a --namespace " + namespace + annotation: f.managedResource(namespace, "a"),
		"kubectl annotate secret a --namespace " + namespace + annotation:          f.secret(namespace, "a"),
		"kubectl annotate namespace " + namespace + annotation:                     &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
	} {
		f.wantDenied(object, command)
		if _, is := object.(*corev1.Namespace); is {
			continue // the other objects are in it
		}
		f.confirm(object)
		kit.Must(f, f.jane.Delete(f.Context(), object))
		f.eventuallyGone(object)
	}
	for _, object := range []client.Object{
		&resourcesv1alpha1.ManagedResource{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"},
			Spec:       resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []resourcesv1alpha1.LocalObjectReference{}},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-other"}},
	} {
		kit.Must(f, f.jane.Create(f.Context(), object))
		kit.Must(f, f.jane.Delete(f.Context(), object))
	}

	// The content of a namespace needs no confirmation if the namespace has one. An object that is being deleted needs none either.
	secret, mr := f.secret(namespace, "b"), f.managedResource(namespace, "b")
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	f.confirm(object)
	kit.Must(f, f.jane.Delete(f.Context(), object))
	kit.Must(f, client.IgnoreNotFound(f.jane.Delete(f.Context(), object)))
	f.eventuallyGone(secret)
	f.eventuallyGone(mr)
	f.eventuallyGone(object)
}

func (f *fixture) collectionIsDenied() {
	namespace := f.namespace()
	confirmed, secret, mr := f.secret(namespace, "a"), f.secret(namespace, "b"), f.managedResource(namespace, "a")
	f.confirm(confirmed)
	for _, kind := range []client.Object{&corev1.Secret{}, &resourcesv1alpha1.ManagedResource{}} {
		if err := f.jane.DeleteAllOf(f.Context(), kind, client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
			f.Errorf("the answer to the deletion of all %T is %v", kind, err)
		}
	}
	for _, object := range []client.Object{secret, mr} {
		kit.Must(f, f.jane.Get(f.Context(), client.ObjectKeyFromObject(object), object))
		if object.GetDeletionTimestamp() != nil {
			f.Errorf("%T %s is being deleted", object, object.GetName())
		}
	}
	kit.Must(f, f.flow.DeleteAllOf(f.Context(), &corev1.Secret{}, client.InNamespace(namespace)))
	f.eventuallyGone(secret)
}

// flowNeedNotConfirm checks that a tombstone deletes a bundle with the namespace of a control plane and all its content, without a
// confirmation. Four programs delete objects in the process: the flow, the resource-manager, and two controllers of
// kube-controller-manager.
func (f *fixture) flowNeedNotConfirm() {
	garden := kit.NewNamespace(f, f.jane, "garden", nil)
	emitter := &flow.Emitter{
		Reader: f.flow, Uncached: f.flow, Writer: f.flow, FieldManager: "test",
		Rules: flow.Rules{Scheme: f.scheme, Protected: flow.DefaultProtected(), Version: "v1"},
	}
	owner := flow.Owner{Flow: "shoot", UID: "uid", Namespace: garden, Name: "one"}
	key := flow.Key{Namespace: garden, Name: "namespace"}
	namespace := &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: garden + "-shoot", Labels: map[string]string{"gardener.cloud/role": "shoot"}},
	}
	_, err := emitter.Emit(f.Context(), owner, flow.Plan{Bundles: []flow.Bundle{{Key: key, Objects: []client.Object{namespace}}}})
	kit.Must(f, err)
	kit.Eventually(f, "the namespace exists", func() string {
		return kit.TextOf(f.jane.Get(f.Context(), client.ObjectKeyFromObject(namespace), namespace))
	})
	secret, inside := f.secret(namespace.Name, "a"), f.managedResource(namespace.Name, "a")
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: garden, Name: "namespace"}}
	f.wantDenied(mr, "kubectl annotate managedresource namespace --namespace "+garden+" confirmation.gardener.cloud/deletion=true")

	result, err := emitter.Emit(f.Context(), owner, flow.Plan{Tombstones: []flow.Tombstone{{Key: key}}})
	kit.Must(f, err)
	if len(result.Written) != 1 {
		f.Fatalf("emitting the tombstone wrote %v: %+v", result.Written, result.Decision)
	}
	for _, object := range []client.Object{secret, inside, namespace, mr} {
		f.eventuallyGone(object)
	}
}

func (f *fixture) garbageCollectorNeedNotConfirm() {
	namespace := f.namespace()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"}}
	kit.Must(f, f.jane.Create(f.Context(), owner))
	secret := f.secret(namespace, "a")
	kit.Change(f, f.jane, secret, func() {
		secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	})
	kit.Must(f, f.jane.Delete(f.Context(), owner))
	f.eventuallyGone(secret)
}

// noReplicaResponds checks that confirmed objects, and objects in a namespace that is being deleted, can be deleted. No other object can.
func (f *fixture) noReplicaResponds() {
	namespace := f.namespace()
	secret, confirmed := f.secret(namespace, "a"), f.secret(namespace, "b")
	plain := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "plain"}}
	kit.Must(f, f.jane.Create(f.Context(), plain))
	f.process.Stop()
	kit.Must(f, f.jane.Delete(f.Context(), plain))
	for user, c := range map[string]client.Client{jane: f.jane, gardenlet: f.flow} {
		if err := c.Delete(f.Context(), secret); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "failed calling webhook") {
			f.Errorf("the answer to the deletion by %s is %v", user, err)
		}
	}
	f.confirm(confirmed)
	kit.Must(f, f.jane.Delete(f.Context(), confirmed))
	f.eventuallyGone(confirmed)
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	f.confirm(object)
	kit.Must(f, f.jane.Delete(f.Context(), object))
	f.eventuallyGone(secret)
	f.eventuallyGone(object)
}
