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

// state is what is declared: the manifests of each ManagedResource.
type state map[string][]string

// scenario is a change of what is declared.
type scenario struct {
	name string
	// given is what is declared, and so, before the change, and then what is declared by it. ManagedResources that are in both have
	// their Secrets written, in the order of their names; those that are in one alone are created or deleted.
	given, then state
	// through is what is declared in between, and not waited for; nil for nothing.
	through state
	// existing are manifests of objects that somebody else has made before.
	existing []string
	// replaced are the names of objects that have to be deleted and created anew.
	replaced []string
	// pruneDelay is how long what leaves a ManagedResource waits for another one.
	pruneDelay time.Duration
	// stopped has the resource-manager start after the change, so that its start is part of the scenario.
	stopped bool
	// dependencies are what ManagedResources depend on.
	dependencies map[string]string
	// reclassed are the ManagedResources that get another class, for which another resource-manager is responsible.
	reclassed []string
	// left are the names of objects that leave their manifests and are to stay as they are, and released those that have to lose their
	// marks as well.
	left, released []string
	// scaled is how many replicas an autoscaler gives Deployments before the change; 0 for none.
	scaled int64
	// collects has the garbage collector run, too.
	collects bool
}

// world is one run of a scenario.
type world struct {
	*ground
	scenario
	// untouched are the objects of others, kept the UIDs of objects that are wanted before the change and after it, and leftBehind those
	// of objects that are to stay though nobody wants them any more.
	untouched        []*unstructured.Unstructured
	kept, leftBehind map[key]string
	// outdated is what ManagedResources were made of before their Secrets were changed.
	outdated map[string]string
	// recreated is the call whose object somebody deletes, so that it is another one in the end; nil for none.
	recreated *call
	// replicas is what Deployments have been scaled to; 0 if they have not.
	replicas int64
	// collecting is the clock of the garbage collector.
	collecting stopping
}

func newWorld(t *testing.T, s scenario) *world {
	t.Helper()
	return &world{ground: newGround(t), scenario: s}
}

// class is that of the ManagedResources, and the identity and managed-by label of the resource-manager: other runs have nothing to do
// with it.
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

// play runs the scenario until what is declared in the end is so, and stops the resource-managers then.
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

// objects returns the objects that are declared, by ManagedResource.
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

// addOthers creates objects that the resource-manager has nothing to do with, one of which looks as if it had.
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

// declare makes one state of another.
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
			w.eventually(func() []string { return w.unrecorded(after) }) // objects of what is deleted do not wait for others
			kit.Must(w, w.client.Delete(w.Context(), w.managedResource(name)))
		}
	}
}

// data returns that of the Secret that holds manifests.
func (w *world) data(manifests []string) map[string][]byte {
	w.Helper()
	return map[string][]byte{"objects.yaml": []byte(w.fill(strings.Join(manifests, "---\n")))}
}

// replacedInputs notes what a ManagedResource was made of until now.
func (w *world) replacedInputs(name string) {
	w.Helper()
	mr := w.managedResource(name)
	kit.Must(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(mr), mr))
	if w.outdated == nil {
		w.outdated = map[string]string{}
	}
	w.outdated[name] = mr.Status.AppliedInputs
}

// unrecorded returns the objects that are declared and in no inventory of their ManagedResources.
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

// create creates an object as the user of a client that does not apply.
func (w *world) create(manifest string) *unstructured.Unstructured {
	w.Helper()
	obj := &unstructured.Unstructured{}
	kit.Must(w, yaml.Unmarshal([]byte(w.fill(manifest)), &obj.Object))
	kit.Must(w, w.client.Create(w.Context(), obj, client.FieldOwner("kubectl-create")))
	return obj
}

// remember notes the UIDs of the objects that are there and have to stay.
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

// clear deletes the objects of the run that an API server can have but few of: addresses of Services are scarce, and it gets slower
// with each definition.
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
			w.Logf("delete what is left: %v", err)
		}
	}
}
