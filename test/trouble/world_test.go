package trouble

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// key identifies an object.
type key struct {
	schema.GroupVersionKind
	namespace, name string
}

func (k key) String() string { return fmt.Sprintf("%s %s/%s", k.Kind, k.namespace, k.name) }

func keyOf(obj *unstructured.Unstructured) key {
	return key{obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName()}
}

// wanted is a declared object and the ManagedResource that declares it.
type wanted struct {
	*unstructured.Unstructured
	by string
}

// world is a namespace for one test, as source and as target. Its name is the class of its ManagedResources and
// the managed-by label of their objects. This separates it from other tests.
type world struct {
	*testing.T
	controlPlane *controlplane.ControlPlane
	client       client.Client
	namespace    string

	mu       sync.Mutex
	declared map[string][]*unstructured.Unstructured
	kinds    map[schema.GroupVersionKind]bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, shared.Get(t))
}

func newWorldOn(t *testing.T, cp *controlplane.ControlPlane) *world {
	t.Helper()
	c := newClient(t, cp)
	return &world{
		T: t, controlPlane: cp, client: c, namespace: kit.NewNamespace(t, c, "trouble", nil),
		declared: map[string][]*unstructured.Unstructured{}, kinds: map[schema.GroupVersionKind]bool{},
	}
}

// parse returns the object of a manifest, in the namespace of the world.
func (w *world) parse(manifest string) *unstructured.Unstructured {
	w.Helper()
	obj := &unstructured.Unstructured{}
	kit.Must(w, yaml.Unmarshal([]byte(manifest), &obj.Object))
	if obj.GetNamespace() == "" {
		obj.SetNamespace(w.namespace)
	}
	return obj
}

// note records the manifests that a ManagedResource declares. Nil manifests record that it is deleted.
func (w *world) note(name string, manifests []string) {
	w.Helper()
	var objects []*unstructured.Unstructured
	for _, manifest := range manifests {
		objects = append(objects, w.parse(manifest))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, obj := range objects {
		w.kinds[obj.GroupVersionKind()] = true
	}
	w.declared[name] = objects
}

// secret writes a Secret that holds manifests.
func (w *world) secret(name string, manifests ...string) {
	w.Helper()
	w.secretWith(name, map[string][]byte{"objects.yaml": w.encode(manifests...)})
}

// encode returns manifests in their encoding in a Secret.
func (w *world) encode(manifests ...string) []byte {
	w.Helper()
	var documents []string
	for _, manifest := range manifests {
		document, err := yaml.Marshal(w.parse(manifest).Object)
		kit.Must(w, err)
		documents = append(documents, string(document))
	}
	return []byte(strings.Join(documents, "---\n"))
}

func (w *world) secretWith(name string, data map[string][]byte) {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Data: data}
	err := w.client.Create(w.Context(), secret.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		err = w.client.Update(w.Context(), secret)
	}
	kit.Must(w, err)
}

// declare creates or updates a ManagedResource and a Secret with the same name that holds manifests.
func (w *world) declare(name string, manifests ...string) *resourcesv1alpha1.ManagedResource {
	w.Helper()
	w.note(name, manifests)
	w.secret(name, manifests...)
	return w.refer(name, name)
}

// refer makes a ManagedResource refer to Secrets. It creates the ManagedResource if necessary.
func (w *world) refer(name string, secrets ...string) *resourcesv1alpha1.ManagedResource {
	w.Helper()
	var references []resourcesv1alpha1.LocalObjectReference
	for _, secret := range secrets {
		references = append(references, resourcesv1alpha1.LocalObjectReference{Name: secret})
	}
	mr := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       resourcesv1alpha1.ManagedResourceSpec{Class: &w.namespace, SecretRefs: references},
	}
	err := w.client.Create(w.Context(), mr)
	if apierrors.IsAlreadyExists(err) {
		err = w.change(name, func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.SecretRefs = references })
	}
	kit.Must(w, err)
	return mr
}

// change changes a ManagedResource.
func (w *world) change(name string, change func(*resourcesv1alpha1.ManagedResource)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		mr := &resourcesv1alpha1.ManagedResource{}
		if err := w.client.Get(w.Context(), w.named(name), mr); err != nil {
			return err
		}
		change(mr)
		return w.client.Update(w.Context(), mr)
	})
}

// undeclare deletes a ManagedResource. Its Secret is retained.
func (w *world) undeclare(name string) {
	w.Helper()
	w.mu.Lock()
	delete(w.declared, name)
	w.mu.Unlock()
	kit.Must(w, client.IgnoreNotFound(w.client.Delete(w.Context(), w.managedResource(name))))
}

func (w *world) named(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

func (w *world) managedResource(name string) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

// read reads a ManagedResource.
func (w *world) read(name string) *resourcesv1alpha1.ManagedResource {
	w.Helper()
	mr := w.managedResource(name)
	kit.Must(w, w.client.Get(w.Context(), w.named(name), mr))
	return mr
}

// eventuallyApplied waits until ResourcesApplied has a status and a reason, and its message contains texts.
func (w *world) eventuallyApplied(name string, status resourcesv1alpha1.ConditionStatus, reason string, says ...string) {
	w.Helper()
	kit.Eventually(w, fmt.Sprintf("ResourcesApplied of %s is %s %s", name, status, reason), func() string {
		mr := w.read(name)
		condition := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
		missing := slices.ContainsFunc(says, func(text string) bool { return !strings.Contains(condition.Message, text) })
		if condition.Status == status && condition.Reason == reason && !missing {
			return ""
		}
		return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
	})
}

// eventuallySays waits until a condition has a status.
func (w *world) eventuallySays(name string, conditionType resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus) {
	w.Helper()
	kit.Eventually(w, fmt.Sprintf("%s of %s is %s", conditionType, name, status), func() string {
		condition := resourcesv1alpha1.ConditionOf(w.read(name).Status.Conditions, conditionType)
		if condition.Status == status {
			return ""
		}
		return fmt.Sprintf("the condition is %s %s: %s", condition.Status, condition.Reason, condition.Message)
	})
}

// live reads an object. It returns nil if the object does not exist.
func (w *world) live(manifest string) *unstructured.Unstructured {
	w.Helper()
	obj := w.parse(manifest)
	err := w.client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	kit.Must(w, err)
	return obj
}

// uid returns the UID of an object, or an empty string if it does not exist.
func (w *world) uid(manifest string) string {
	w.Helper()
	obj := w.live(manifest)
	if obj == nil {
		return ""
	}
	return string(obj.GetUID())
}

// patch changes an object as a user would by hand.
func (w *world) patch(manifest, body string) {
	w.Helper()
	obj := w.parse(manifest)
	patch := client.RawPatch("application/merge-patch+json", []byte(body))
	kit.Must(w, w.client.Patch(w.Context(), obj, patch, client.FieldOwner("kubectl-edit")))
}

// delete deletes an object, if it exists.
func (w *world) delete(manifest string) {
	w.Helper()
	kit.Must(w, client.IgnoreNotFound(w.client.Delete(w.Context(), w.parse(manifest))))
}

// eventuallyHolds waits until the declared state is established: invariant N.
func (w *world) eventuallyHolds(reason string) {
	w.Helper()
	kit.Eventually(w, reason+", the declared state is established", w.objectionsAtMost(10))
}

// objectionsAtMost returns a check that reports at most this many objections.
func (w *world) objectionsAtMost(most int) func() string {
	return func() string {
		started := time.Now()
		defer func() { time.Sleep(3 * time.Since(started)) }() // a check of thousands of objects slows down other processes, too
		objections := w.objections()
		if more := len(objections) - most; more > 0 {
			objections = append(objections[:most], fmt.Sprintf("and %d more", more))
		}
		return strings.Join(objections, "; ")
	}
}

// wanted returns the declared objects.
func (w *world) wanted() (map[key]wanted, []schema.GroupVersionKind, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[key]wanted{}
	for name, objects := range w.declared {
		for _, obj := range objects {
			all[keyOf(obj)] = wanted{obj, name}
		}
	}
	var kinds []schema.GroupVersionKind
	for kind := range w.kinds {
		kinds = append(kinds, kind)
	}
	return all, kinds, len(w.declared)
}

// objections returns the differences from the declared state: missing, different and unwanted objects, inventories
// that differ from the manifests, and ManagedResources that are not applied in their current version or not wanted
// any more.
func (w *world) objections() []string {
	all, kinds, count := w.wanted()
	ours, err := w.ours(kinds)
	if err != nil {
		return []string{err.Error()}
	}
	var objections []string
	for k, want := range all {
		if got, there := ours[k]; !there {
			objections = append(objections, k.String()+" is missing")
		} else if text := w.differs(want, got); text != "" {
			objections = append(objections, k.String()+": "+text)
		}
	}
	for k, obj := range ours {
		if _, is := all[k]; !is {
			objections = append(objections, fmt.Sprintf("%s exists, but is not wanted; deletion timestamp %v", k, obj.GetDeletionTimestamp()))
		}
	}
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := w.client.List(w.Context(), list, client.InNamespace(w.namespace)); err != nil {
		return append(objections, err.Error())
	}
	if len(list.Items) != count {
		objections = append(objections, fmt.Sprintf("found %d ManagedResources, want %d", len(list.Items), count))
	}
	for i := range list.Items {
		objections = append(objections, objectionsTo(&list.Items[i], all)...)
	}
	slices.Sort(objections)
	return objections
}

// ours returns the objects with our label.
func (w *world) ours(kinds []schema.GroupVersionKind) (map[key]*unstructured.Unstructured, error) {
	ours := map[key]*unstructured.Unstructured{}
	for _, gvk := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := w.client.List(w.Context(), list, client.MatchingLabels{resourcesv1alpha1.LabelManagedBy: w.namespace})
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // the definition does not exist, so no objects exist
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			ours[keyOf(&list.Items[i])] = &list.Items[i]
		}
	}
	return ours, nil
}

func (w *world) differs(want wanted, got *unstructured.Unstructured) string {
	if got.GetDeletionTimestamp() != nil {
		return "it is being deleted"
	}
	if origin := got.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]; !strings.HasSuffix(origin, w.namespace+"/"+want.by) {
		return "its origin is " + origin
	}
	for field, value := range want.Object {
		switch {
		case field == "stringData": // converted to data
		case field == "data" && !reflect.DeepEqual(value, got.Object[field]), !within(value, got.Object[field]):
			return fmt.Sprintf("%s is %v, want %v", field, got.Object[field], value)
		}
	}
	return ""
}

// objectionsTo returns the differences between a ManagedResource and a healthy, fully applied one.
func objectionsTo(mr *resourcesv1alpha1.ManagedResource, all map[key]wanted) []string {
	if mr.DeletionTimestamp != nil {
		return []string{fmt.Sprintf("%s is being deleted: %d objects remain", mr.Name, len(mr.Status.Resources))}
	}
	var objections []string
	condition := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	if condition.Status != resourcesv1alpha1.ConditionTrue || mr.Status.ObservedGeneration != mr.Generation || mr.Status.AppliedInputs == "" {
		objections = append(objections, fmt.Sprintf("%s is not applied: %s %s: %s", mr.Name, condition.Status, condition.Reason, condition.Message))
	}
	recorded := map[key]bool{}
	for _, entry := range mr.Status.Resources {
		k := key{schema.FromAPIVersionAndKind(entry.APIVersion, entry.Kind), entry.Namespace, entry.Name}
		recorded[k] = true
		if all[k].by != mr.Name {
			objections = append(objections, fmt.Sprintf("the inventory of %s has %s", mr.Name, k))
		}
	}
	for k, want := range all {
		if want.by == mr.Name && !recorded[k] {
			objections = append(objections, fmt.Sprintf("the inventory of %s lacks %s", mr.Name, k))
		}
	}
	return objections
}

// background is a context for the cleanup after the test has ended.
func (w *world) background() context.Context { return context.WithoutCancel(w.Context()) }
