package integration

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// configMaps returns ConfigMaps with a prefix and a number in their names.
func (f *fixture) configMaps(prefix string, count int) string {
	var texts []string
	for i := range count {
		texts = append(texts, f.configMap(fmt.Sprintf("%s-%d", prefix, i), "1"))
	}
	return strings.Join(texts, "---\n")
}

// guarded creates a ManagedResource that may prune the given percentage, and applies it.
func (f *fixture) guarded(name string, maxPercent *int32, manifests string) *resourcesv1alpha1.ManagedResource {
	mr := f.manage(name, manifests)
	f.change(mr, func() { mr.Spec.Prune = &resourcesv1alpha1.PruneGuard{MaxPercent: maxPercent} })
	return f.reconcileOK(name)
}

// wantRefused reconciles and expects that the prune guard refuses to prune. It returns the message of the condition.
func (f *fixture) wantRefused(name string) string {
	f.Helper()
	mr, result, err := f.reconcile(name)
	wantRetry(f.T, false, result, err)
	condition := applied(mr)
	if condition.Status != resourcesv1alpha1.ConditionFalse || condition.Reason != resourcesv1alpha1.ReasonPruneRefused {
		f.Errorf("ResourcesApplied is %s %s: %s", condition.Status, condition.Reason, condition.Message)
	}
	return condition.Message
}

// TestPruneGuardCountsOnlyTheInventory: objects that the same change adds do not count as kept objects, in this
// reconcile and in all later ones, although they are in the inventory by then.
func TestPruneGuardCountsOnlyTheInventory(t *testing.T) {
	for name, test := range map[string]struct {
		maxPercent *int32
		before     func(*fixture) string
		after      func(*fixture) string
		says       string
	}{
		"all are renamed": {
			ptr.To[int32](50), func(f *fixture) string { return f.configMaps("old", 4) }, func(f *fixture) string { return f.configMaps("new", 4) },
			"4 of 4 objects",
		},
		"one other object replaces all": {
			nil, func(f *fixture) string { return f.configMaps("old", 3) }, func(f *fixture) string { return f.configMap("other", "1") },
			"3 of 3 objects",
		},
		"more are added than removed": {
			ptr.To[int32](30), func(f *fixture) string { return f.configMaps("old", 20) },
			func(f *fixture) string { return f.configMaps("old", 13) + "---\n" + f.configMaps("new", 10) },
			"7 of 20 objects",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			mr := f.guarded("set", test.maxPercent, test.before(f))
			f.secret("set", "objects.yaml", test.after(f))
			for range 2 {
				wantContains(t, f.wantRefused("set"), test.says)
				f.restart()
			}
			// An unrelated change does not turn the new objects into old ones.
			f.secret("set", "objects.yaml", test.after(f)+"---\n"+f.configMap("late", "1"))
			message := f.wantRefused("set")
			wantContains(t, message, test.says)
			f.wantConfigMap("old-0", "1")

			_, confirmation, _ := strings.Cut(message, resourcesv1alpha1.AnnotationConfirmPrune+"=")
			must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(mr), mr))
			f.change(mr, func() { mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationConfirmPrune: confirmation} })
			f.reconcileOK("set")
			f.wantNoConfigMap("old-19")
			f.wantConfigMap("late", "1")
			f.secret("set", "objects.yaml", "# nothing")
			f.wantRefused("set") // all objects of the inventory
			f.wantConfigMap("late", "1")
		})
	}
}

// TestPruneGuardWhileManifestsCannotBeRead: objects added in the meantime do not count as kept objects.
func TestPruneGuardWhileManifestsCannotBeRead(t *testing.T) {
	f := newFixture(t)
	f.guarded("set", ptr.To[int32](50), f.configMaps("old", 3))
	f.secret("set", "objects.yaml", f.configMaps("new", 6)+"---\nno: object\n")
	if mr, _, _ := f.reconcile("set"); applied(mr).Reason != resourcesv1alpha1.ReasonDecodingFailed {
		t.Fatalf("ResourcesApplied is %+v", applied(mr))
	}
	f.secret("set", "objects.yaml", f.configMaps("new", 6))
	wantContains(t, f.wantRefused("set"), "3 of 3 objects")
	f.wantConfigMap("old-0", "1")
}

// TestPruneGuardAfterManifestsCouldNotBeRead: after a mistake in the first manifests is corrected, the guard does not
// refuse.
func TestPruneGuardAfterManifestsCouldNotBeRead(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMaps("new", 4)+"---\nno: object\n")
	f.change(mr, func() { mr.Spec.Prune = &resourcesv1alpha1.PruneGuard{MaxPercent: ptr.To[int32](50)} })
	_, _, _ = f.reconcile("set")
	f.wantConfigMap("new-3", "1")
	f.secret("set", "objects.yaml", f.configMaps("new", 3))
	f.reconcileOK("set")
	f.wantNoConfigMap("new-3")
}

// TestPruneGuard_ReleasesKeptObjects: objects that another ManagedResource takes over, or that have an annotation to
// be kept, are not deleted.
func TestPruneGuard_ReleasesKeptObjects(t *testing.T) {
	f := newFixture(t)
	kept := strings.Replace(f.configMap("kept", "1"), "metadata:", "metadata:\n  annotations: {resources.gardener.cloud/keep-object: \"true\"}", 1)
	f.guarded("first", ptr.To[int32](0), f.configMaps("moved", 2)+"---\n"+kept+"---\n"+f.configMap("mine", "1"))
	f.secret("first", "objects.yaml", f.configMap("other", "1"))
	wantContains(t, f.wantRefused("first"), "3 of 4 objects")
	f.wantConfigMap("kept", "1") // released
	uid := f.wantConfigMap("moved-0", "1").UID

	f.manage("second", f.configMaps("moved", 2))
	_, _, _ = f.reconcile("second")
	wantContains(t, f.wantRefused("first"), "1 of ")
	f.reconcileOK("second")
	if moved := f.wantConfigMap("moved-0", "1"); moved.UID != uid {
		t.Error("the object was deleted and created again")
	}
	f.wantConfigMap("mine", "1")

	f.secret("first", "objects.yaml", f.configMap("other", "1")+"---\n"+f.configMap("mine", "1"))
	f.reconcileOK("first")
}
