package managedresource

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/live"
)

func TestWaitForDeletion(t *testing.T) {
	now := time.Unix(1000, 0)
	for grace, want := range map[string]struct {
		due      time.Time
		finalize bool
		says     string
	}{
		"": {}, "1h": {due: now.Add(59 * time.Minute)}, "30s": {finalize: true, says: "removed after 30s"}, "0s": {},
		"-1h": {says: "not a positive duration"}, "soon": {says: "not a positive duration"},
	} {
		got := waitForDeletion(live.Observation{Deleting: now.Add(-time.Minute), FinalizeAfter: grace}, time.Time{}, now)
		if got.action != actionWait || !got.due.Equal(want.due) || got.finalize != want.finalize || !strings.Contains(got.reason, want.says) {
			t.Errorf("%q: %+v", grace, got)
		}
	}
}

func TestReplaceOf(t *testing.T) {
	for policy, valid := range map[string]bool{"": true, "Background": true, "Foreground": true, "Orphan": true, "background": false, "x": false} {
		manifest := manifestOf(configMapKind, "a", "x")
		manifest.Annotations = map[string]string{resourcesv1alpha1.AnnotationDeletionPropagationOnInvalidUpdate: policy}
		replace := replaceOf(&manifest)
		if (replace.Err == nil) != valid || !replace.Immutable || replace.Allowed || valid && policy != "" && string(*replace.Propagation) != policy {
			t.Errorf("%q: %+v", policy, replace)
		}
	}
}

func TestOutcomeOf(t *testing.T) {
	for want, change := range map[string]change{
		"conflict": {action: actionConflict, err: errTimeout}, "failed": {action: actionApply, err: errTimeout}, "created": {action: actionCreate},
		"unchanged": {action: actionApply, unchanged: true}, "updated": {action: actionApply}, "pruned": {action: actionForget},
		"released": {action: actionRelease}, "waiting": {action: actionWait}, "skipped": {action: actionSkip},
	} {
		if got := outcomeOf(change); got != want {
			t.Errorf("%+v is %s, want %s", change, got, want)
		}
	}
}

// TestKubectlsAnnotationIsNotRecorded checks that the inventory does not contain kubectl's annotation, whose value is the whole
// object.
func TestKubectlsAnnotationIsNotRecorded(t *testing.T) {
	const key = "kubectl.kubernetes.io/last-applied-configuration"
	manifest := manifestOf(secretKind, "a", "x")
	manifest.Annotations = map[string]string{key: "hunter2", "a": "b"}
	recorded := entryOf(manifest, "sent.owned")
	if value, found := recorded.Annotations[key]; !found || value != "" || recorded.Annotations["a"] != "b" || manifest.Annotations[key] != "hunter2" {
		t.Errorf("recorded is %v of %v", recorded.Annotations, manifest.Annotations)
	}
	recorded.Annotations[key] = "hunter2" // by a previous version
	for _, entry := range inventoryOf([]resourcesv1alpha1.ObjectReference{recorded}, nil) {
		if entry.Annotations[key] != "" {
			t.Errorf("read is %v", entry.Annotations)
		}
	}
}

func TestDependencies(t *testing.T) {
	name := func(text string) types.NamespacedName { return types.NamespacedName{Namespace: "garden", Name: text} }
	world := map[types.NamespacedName]*resourcesv1alpha1.ManagedResource{}
	add := func(text string, ready bool, on ...string) *resourcesv1alpha1.ManagedResource {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: text, Generation: 1}}
		for _, other := range on {
			mr.Spec.DependsOn = append(mr.Spec.DependsOn, resourcesv1alpha1.Dependency{Name: other})
		}
		if ready {
			mr.Status.ObservedGeneration = 1
			for _, condition := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
				mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{Type: condition, Status: resourcesv1alpha1.ConditionTrue})
			}
		}
		world[name(text)] = mr
		return mr
	}
	get := func(name types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) { return world[name], nil }
	add("ready", true)
	add("waiting", false)
	add("first", true, "second", "ready")
	add("second", true, "gone", "first")
	for name, test := range map[string]struct {
		mr   *resourcesv1alpha1.ManagedResource
		want []string
	}{
		"none":        {add("free", false), nil},
		"ready":       {add("on-ready", false, "ready"), nil},
		"not ready":   {add("on-waiting", false, "waiting", "ready"), []string{"ManagedResource garden/waiting"}},
		"none there":  {add("on-gone", false, "gone"), []string{"garden/gone does not exist"}},
		"a cycle":     {world[name("first")], []string{"garden/second → garden/first"}},
		"itself":      {add("self", false, "self"), []string{"garden/self"}},
		"on a cycle":  {add("outside", false, "first"), nil},
		"two at once": {add("on-two", false, "gone", "waiting"), []string{"garden/gone", "garden/waiting"}},
	} {
		got, err := gateOf(test.mr, get)
		if err != nil || got.open() != (test.want == nil) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		expectContains(t, got.reason(), test.want...)
	}
	_, err := gateOf(world[name("first")], func(types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) { return nil, errTimeout })
	if err == nil {
		t.Error("an unreadable ManagedResource is skipped")
	}
	if names := world[name("first")].Dependencies(); !slices.Equal(names, []types.NamespacedName{name("second"), name("ready")}) {
		t.Errorf("the dependencies are %v", names)
	}
}
