package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// driftSort is a way to change objects by hand. edit is nil if the object is deleted.
type driftSort struct {
	name, manager string
	edit          func(kind driftKind, object *unstructured.Unstructured)
}

// onMaps returns an edit of the labels or annotations.
func onMaps(field string, change func(map[string]string)) func(driftKind, *unstructured.Unstructured) {
	return func(_ driftKind, object *unstructured.Unstructured) {
		values, _, _ := unstructured.NestedStringMap(object.Object, "metadata", field)
		change(values)
		_ = unstructured.SetNestedStringMap(object.Object, values, "metadata", field)
	}
}

var driftSorts = []driftSort{
	{"owned", "some-controller", func(kind driftKind, object *unstructured.Unstructured) { kind.owned(object) }},
	{"edited", "kubectl-edit", func(kind driftKind, object *unstructured.Unstructured) { kind.owned(object) }},
	{"added", "kubectl-edit", func(kind driftKind, object *unstructured.Unstructured) { kind.added(object) }},
	{"label", "kubectl-label", onMaps("labels", func(m map[string]string) { m["mine"] = "by-hand" })},
	{"unlabelled", "kubectl-label", onMaps("labels", func(m map[string]string) { delete(m, "mine") })},
	{"annotation", "kubectl-annotate", onMaps("annotations", func(m map[string]string) { m["mine"] = "by-hand" })},
	{"unannotated", "kubectl-patch", onMaps("annotations", func(m map[string]string) { delete(m, "mine") })},
	{"unmanaged", "kubectl-edit", onMaps("labels", func(m map[string]string) { delete(m, resourcesv1alpha1.LabelManagedBy) })},
	{"no-origin", "kubectl-edit", onMaps("annotations", func(m map[string]string) { delete(m, resourcesv1alpha1.AnnotationOrigin) })},
	{"deleted", "", nil},
}

// named returns the manifest of an object of the kind.
func (k driftKind) named(name string) string {
	return strings.NewReplacer("NAME", name, "MARKS", "labels: {mine: x}, annotations: {mine: x}").Replace(k.manifest)
}

// TestLiveDrift changes objects of many kinds by hand in every way. Each change is corrected because a watch reports
// it: the sync period is too long. Each change has a separate object, because repeated changes are corrected with
// increasing delays. With -v it prints the time from the response of each change to its correction.
func TestLiveDrift(t *testing.T) {
	f := newFixture(t)
	f.start(onlyEvents)
	kinds := driftKinds()
	documents := []string{f.here(strings.ReplaceAll(twins, "GROUP", "NS.example.org"))}
	for _, kind := range kinds {
		for _, sort := range driftSorts {
			documents = append(documents, f.here(kind.named(sort.name)))
		}
	}
	mr := f.manage("set", documents...)
	f.eventuallySucceeded("set")

	times := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		for _, sort := range driftSorts {
			if sort.name == "added" && kinds[name].added == nil {
				times[name] = append(times[name], fmt.Sprintf("%11s", "-"))
				continue
			}
			took := f.untilPutBack(kinds[name], sort)
			times[name] = append(times[name], fmt.Sprintf("%11.1f", float64(took.Microseconds())/1000))
		}
	}
	f.eventuallySucceeded("set")
	must(t, f.client.Delete(f.ctx, mr))
	f.eventually("everything is deleted", func() bool { return f.client.Get(f.ctx, client.ObjectKeyFromObject(mr), mr) != nil })

	lines := []string{fmt.Sprintf("%-31s", "ms until corrected")}
	for _, sort := range driftSorts {
		lines[0] += fmt.Sprintf("%11s", sort.name)
	}
	for _, name := range slices.Sorted(maps.Keys(times)) {
		lines = append(lines, fmt.Sprintf("%-31s%s", name, strings.Join(times[name], "")))
	}
	t.Log("\n" + strings.Join(lines, "\n"))
}

// untilPutBack changes an object and returns the time from the response until the object is as before.
func (f *fixture) untilPutBack(kind driftKind, sort driftSort) time.Duration {
	f.Helper()
	object := f.object(kind.named(sort.name))
	what := object.GetKind() + " " + sort.name
	before := object.DeepCopy()
	watcher := f.watch(object)
	defer watcher.Stop()

	if sort.edit == nil {
		must(f, f.client.Delete(f.ctx, object))
	} else {
		sort.edit(kind, object)
		if equality.Semantic.DeepEqual(essential(object), essential(before)) {
			f.Fatalf("%s: the edit changes nothing", what)
		}
		must(f, f.client.Patch(f.ctx, object, client.MergeFrom(before), client.FieldOwner(sort.manager)))
	}
	changed := time.Now()
	// Each of the API server's five workers that delete definitions waits for a minute if objects of another test have finalizers.
	timeout := time.After(5 * kit.WaitTimeout)
	disturbed := false
	for {
		select {
		case <-timeout:
			f.Fatalf("%s is not corrected within %s:\n%v\nwant\n%v", what, time.Since(changed), essential(object), essential(before))
		case event, open := <-watcher.ResultChan():
			current, is := event.Object.(*unstructured.Unstructured)
			if !open || !is {
				f.Fatalf("the watch of %s ends: %v", what, event)
			}
			object = current
			right := event.Type != watch.Deleted && equality.Semantic.DeepEqual(essential(current), essential(before))
			if disturbed = disturbed || !right; disturbed && right {
				f.wantSameUID(what, before, current, sort.edit == nil)
				return time.Since(changed)
			}
		}
	}
}

func (f *fixture) wantSameUID(what string, before, after *unstructured.Unstructured, deleted bool) {
	f.Helper()
	if same := before.GetUID() == after.GetUID(); same == deleted {
		f.Errorf("%s has the same UID as before: %v, want %v", what, same, !deleted)
	}
}

// watch watches one object from its current state on. It sends no resource version. The API server's cache of a new
// kind may start after the version of the object, and a watch from that version would fail with "too old resource
// version".
func (f *fixture) watch(object *unstructured.Unstructured) watch.Interface {
	f.Helper()
	watching, err := client.NewWithWatch(shared.Get(f).Config(), client.Options{Scheme: f.client.Scheme(), Mapper: f.client.RESTMapper()})
	must(f, err)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(object.GroupVersionKind())
	watcher, err := watching.Watch(context.WithoutCancel(f.ctx), list, client.InNamespace(object.GetNamespace()), &client.ListOptions{
		Namespace:     object.GetNamespace(),
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, object.GetName()),
	})
	must(f, err)
	return watcher
}

// essential returns the parts of an object that manifests and users set, without the status and the fields that the
// API server maintains.
func essential(object *unstructured.Unstructured) map[string]any {
	result := object.DeepCopy().Object
	delete(result, "status")
	annotations := object.GetAnnotations()
	for _, byController := range []string{"deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"} {
		delete(annotations, byController)
	}
	result["metadata"] = map[string]any{"labels": object.GetLabels(), "annotations": annotations, "name": object.GetName()}
	return result
}
