package faults

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// state maps each declared ManagedResource to its manifests.
type state map[string][]string

// scenario is a change of the declared state.
type scenario struct {
	name string
	// given is the declared and established state before the change, and then the state that the change declares. The
	// Secrets of ManagedResources in both are written, in the order of their names. ManagedResources in only one of
	// them are created or deleted.
	given, then state
	// through is an intermediate state that is declared, but not waited for. It is nil for none.
	through state
	// existing are manifests of objects that another client creates first.
	existing []string
	// replaced are the names of objects that have to be deleted and created again.
	replaced []string
	// pruneDelay is how long an object that leaves a ManagedResource waits for another one to claim it.
	pruneDelay time.Duration
	// stopped starts the resource-manager after the change, so that its start is part of the scenario.
	stopped bool
	// dependencies maps ManagedResources to the ManagedResource that they depend on.
	dependencies map[string]string
	// reclassed are the ManagedResources that change their class. Another resource-manager is responsible for the new
	// class.
	reclassed []string
	// left are the names of objects that leave their manifests and must be retained unchanged. Released are those
	// that must also lose their marks.
	left, released []string
	// scaled is the number of replicas that an autoscaler sets for Deployments before the change. It is 0 for none.
	scaled int64
	// collects also runs the garbage collector.
	collects bool
}

// world is one run of a scenario.
type world struct {
	*ground
	scenario
	// untouched are the objects of other owners. Kept are the UIDs of objects that are wanted both before and after
	// the change. LeftBehind are the UIDs of objects that must be retained although they are no longer wanted.
	untouched        []*unstructured.Unstructured
	kept, leftBehind map[key]string
	// outdated maps ManagedResources to their applied inputs before their Secrets changed.
	outdated map[string]string
	// recreated is the call whose object is deleted by hand, so that its UID changes. It is nil for none.
	recreated *call
	// replicas is the number of replicas that Deployments have been scaled to. It is 0 if they have not been scaled.
	replicas int64
	// collecting is the clock of the garbage collector.
	collecting stopping
}

func newWorld(t *testing.T, s scenario) *world {
	t.Helper()
	return &world{ground: newGround(t), scenario: s}
}

// class is the class of the ManagedResources, and the identity and managed-by label of the resource-manager. It
// separates the run from other runs.
func (w *world) class() string { return w.namespace }

// newClass is another class, for a ManagedResource that changes its class.
func (w *world) newClass() string { return w.namespace + "-new" }

// newLine returns the clients of the resource-managers of the run.
func (w *world) newLine(plans ...*plan) *line {
	for _, p := range plans {
		if p.fault.recreates {
			deleted := p.site.call
			deleted.group, deleted.namespace = w.fill(deleted.group), w.fill(deleted.namespace)
			w.recreated = &deleted
		}
	}
	return w.ground.newLine(plans, w.attest)
}

// play runs the scenario until the final declared state is established, and then stops the resource-managers.
func (w *world) play(l *line) {
	w.Helper()
	w.Cleanup(w.clear)
	w.addOthers()
	w.declare(nil, w.given)
	stop := w.startManagers(l)
	w.eventually(func() []string { return w.objections(w.given) })
	w.remember()
	w.scale()
	w.mature()
	if w.stopped {
		stop()
	}
	l.begin()
	if w.through != nil {
		w.declare(w.given, w.through)
		w.declare(w.through, w.then)
	} else {
		w.declare(w.given, w.then)
	}
	if w.stopped {
		stop = w.startManagers(l)
	}
	sure := w.through == nil
	w.eventually(func() []string { return slices.Concat(l.pending(sure), w.objections(w.then), l.pending(sure)) })
	stop()
}

// objects returns the declared objects by ManagedResource.
func (w *world) objects(s state) map[string][]*unstructured.Unstructured {
	w.Helper()
	objects := map[string][]*unstructured.Unstructured{}
	for name, manifests := range s {
		for _, manifest := range manifests {
			obj := &unstructured.Unstructured{}
			kit.Must(w, yaml.Unmarshal([]byte(w.fill(manifest)), &obj.Object))
			objects[name] = append(objects[name], obj)
		}
	}
	return objects
}

// addOthers creates objects of other owners. One of them carries the marks of an object of ours.
func (w *world) addOthers() {
	w.Helper()
	for _, manifest := range []string{
		configMap("of-a-person", "1"),
		strings.Replace(configMap("of-another-manager", "1"), "metadata:\n", "metadata:\n"+
			"  labels: {"+resourcesv1alpha1.LabelManagedBy+": NAMESPACE}\n"+
			"  annotations: {"+resourcesv1alpha1.AnnotationOrigin+": 'elsewhere:NAMESPACE/a'}\n", 1),
	} {
		w.untouched = append(w.untouched, w.create(manifest))
	}
}

// declare changes the declared state from one to another.
func (w *world) declare(before, after state) {
	w.Helper()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Data: w.data(after[name])}
		if _, exists := before[name]; exists {
			if !slices.Equal(before[name], after[name]) {
				w.replacedInputs(name)
				kit.Must(w, w.client.Update(w.Context(), secret))
			}
			if slices.Contains(w.reclassed, name) {
				kit.Must(w, w.client.Patch(w.Context(), w.managedResource(name),
					client.RawPatch(types.MergePatchType, []byte(`{"spec":{"class":"`+w.newClass()+`"}}`))))
			}
			continue
		}
		kit.Must(w, w.client.Create(w.Context(), secret))
		mr := w.managedResource(name)
		mr.Spec.Class, mr.Spec.SecretRefs = ptr.To(w.class()), []resourcesv1alpha1.LocalObjectReference{{Name: name}}
		if dependency := w.dependencies[name]; dependency != "" {
			mr.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: dependency}}
		}
		kit.Must(w, w.client.Create(w.Context(), mr))
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[name]; !stays {
			w.eventually(func() []string { return w.unrecorded(after) }) // objects of a deleted ManagedResource do not wait for others
			kit.Must(w, w.client.Delete(w.Context(), w.managedResource(name)))
		}
	}
}

// data returns the data of the Secret that holds manifests.
func (w *world) data(manifests []string) map[string][]byte {
	w.Helper()
	return map[string][]byte{"objects.yaml": []byte(w.fill(strings.Join(manifests, "---\n")))}
}

// replacedInputs records the current inputs of a ManagedResource as outdated.
func (w *world) replacedInputs(name string) {
	w.Helper()
	mr := w.managedResource(name)
	kit.Must(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(mr), mr))
	if w.outdated == nil {
		w.outdated = map[string]string{}
	}
	w.outdated[name] = mr.Status.AppliedInputs
}

// unrecorded returns the declared objects that are not in the inventory of their ManagedResource.
func (w *world) unrecorded(s state) []string {
	w.Helper()
	var unrecorded []string
	for k, want := range w.wanted(s) {
		if mr := w.readRecord(types.NamespacedName{Namespace: w.namespace, Name: want.by}); mr == nil || !records(mr, k) {
			unrecorded = append(unrecorded, k.String()+" is not recorded")
		}
	}
	return unrecorded
}

// create creates an object as the user of a client that does not use server-side apply.
func (w *world) create(manifest string) *unstructured.Unstructured {
	w.Helper()
	obj := &unstructured.Unstructured{}
	kit.Must(w, yaml.Unmarshal([]byte(w.fill(manifest)), &obj.Object))
	kit.Must(w, w.client.Create(w.Context(), obj, client.FieldOwner("kubectl-create")))
	return obj
}

// remember records the UIDs of the existing objects that must be retained.
func (w *world) remember() {
	w.Helper()
	w.kept, w.leftBehind = map[key]string{}, map[key]string{}
	for _, manifest := range w.existing {
		obj := w.create(manifest)
		w.kept[keyOf(obj)] = string(obj.GetUID())
	}
	stays := w.wanted(w.then)
	for k, uid := range w.uids() {
		if _, is := stays[k]; is && !slices.Contains(w.replaced, k.name) {
			w.kept[k] = uid
		}
		if slices.Contains(w.left, k.name) || slices.Contains(w.released, k.name) {
			w.leftBehind[k] = uid
		}
	}
}

// uids returns the UIDs of our objects.
func (w *world) uids() map[key]string {
	w.Helper()
	ours, err := w.ours()
	kit.Must(w, err)
	uids := map[key]string{}
	for k, obj := range ours {
		uids[k] = string(obj.GetUID())
	}
	return uids
}

func (w *world) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

func (w *world) managedResource(name string) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

// clear deletes objects of the run that an API server can hold only few of: addresses of Services are scarce, and
// each definition slows the API server down.
func (w *world) clear() {
	for kind, options := range map[schema.GroupVersionKind]client.DeleteAllOfOption{
		{Version: "v1", Kind: "Service"}: client.InNamespace(w.namespace),
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}: client.MatchingLabels{
			resourcesv1alpha1.LabelManagedBy: w.class(),
		},
	} {
		objects := &metav1.PartialObjectMetadata{}
		objects.SetGroupVersionKind(kind)
		if err := w.client.DeleteAllOf(w.always(), objects, options); err != nil {
			w.Logf("delete the remaining objects: %v", err)
		}
	}
}
