package managedresource

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/live"
)

// TestDeletionOrder checks that a deletion waits for the ManagedResources that must be deleted first, unless they wait for this
// one in turn.
func TestDeletionOrder(t *testing.T) {
	for name, test := range map[string]struct {
		before       map[string]string
		waits, cycle string
	}{
		"nothing":                          {nil, "", ""},
		"one":                              {map[string]string{"a": "b"}, "b", ""},
		"several, sorted":                  {map[string]string{"a": "c b", "c": "b"}, "b c", ""},
		"itself":                           {map[string]string{"a": "a"}, "", "a a"},
		"a cycle":                          {map[string]string{"a": "b", "b": "a"}, "", "a b a"},
		"a long cycle":                     {map[string]string{"a": "b", "b": "c", "c": "d", "d": "b a"}, "", "a b c d a"},
		"a cycle, and another one":         {map[string]string{"a": "b c", "b": "a"}, "c", "a b a"},
		"one that waits for a cycle":       {map[string]string{"a": "b", "b": "c", "c": "b"}, "b", ""},
		"one on which two ways of it lead": {map[string]string{"a": "b c", "b": "d", "c": "d"}, "b c", ""},
	} {
		order, err := deletionOrderOf(types.NamespacedName{Name: "a"}, func(name types.NamespacedName) ([]types.NamespacedName, error) {
			var names []types.NamespacedName
			for _, text := range strings.Fields(test.before[name.Name]) {
				names = append(names, types.NamespacedName{Name: text})
			}
			return names, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		cycle := ""
		if len(order.cycles) > 0 {
			cycle = plain(order.cycles[0])
		}
		if got := plain(order.waits); got != test.waits || cycle != test.cycle {
			t.Errorf("%s: waits for %q, cycle %q", name, got, cycle)
		}
	}
	_, err := deletionOrderOf(shop, func(types.NamespacedName) ([]types.NamespacedName, error) { return nil, errTimeout })
	if err == nil {
		t.Error("an unreadable ManagedResource counts as deleted")
	}
}

func plain(names []types.NamespacedName) string {
	texts := make([]string, 0, len(names))
	for _, name := range names {
		texts = append(texts, name.Name)
	}
	return strings.Join(texts, " ")
}

// TestAwaitsOthers checks that only a deletion that deletes objects waits, and only until its time is up.
func TestAwaitsOthers(t *testing.T) {
	now := time.Unix(10_000, 0)
	for name, test := range map[string]struct {
		change func(*resourcesv1alpha1.ManagedResource)
		want   bool
	}{
		"deleted":               {func(*resourcesv1alpha1.ManagedResource) {}, true},
		"to another class":      {func(mr *resourcesv1alpha1.ManagedResource) { mr.DeletionTimestamp = nil }, false},
		"keeps its objects":     {func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.KeepObjects = ptr.To(true) }, false},
		"its time is not up":    {func(mr *resourcesv1alpha1.ManagedResource) { mr.Annotations = finalizeAfter("1h") }, true},
		"its time is up":        {func(mr *resourcesv1alpha1.ManagedResource) { mr.Annotations = finalizeAfter("1m") }, false},
		"a time that is no one": {func(mr *resourcesv1alpha1.ManagedResource) { mr.Annotations = finalizeAfter("-1m") }, true},
	} {
		mr := &resourcesv1alpha1.ManagedResource{}
		mr.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)}
		test.change(mr)
		if got := awaitsOthers(mr, now); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func finalizeAfter(text string) map[string]string {
	return map[string]string{resourcesv1alpha1.AnnotationFinalizeDeletionAfter: text}
}

// TestFinalizeAll checks that the earlier of the times of the ManagedResource and of the object counts.
func TestFinalizeAll(t *testing.T) {
	deleted := time.Unix(10_000, 0)
	for name, test := range map[string]struct {
		own      string
		all      time.Time
		now      time.Duration
		finalize bool
		due      time.Time
	}{
		"the ManagedResource's, later":       {"", deleted.Add(time.Minute), 0, false, deleted.Add(time.Minute)},
		"the ManagedResource's, now":         {"", deleted.Add(time.Minute), time.Minute, true, time.Time{}},
		"the object's is earlier":            {"10s", deleted.Add(time.Minute), 0, false, deleted.Add(10 * time.Second)},
		"the object's is later":              {"1h", deleted.Add(time.Minute), time.Minute, true, time.Time{}},
		"the object's is invalid, the other": {"soon", deleted.Add(time.Minute), time.Minute, true, time.Time{}},
	} {
		got := waitForDeletion(live.Observation{Deleting: deleted, FinalizeAfter: test.own}, test.all, deleted.Add(test.now))
		if got.finalize != test.finalize || !got.due.Equal(test.due) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
