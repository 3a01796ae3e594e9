package resting

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// cache is a fake cache with ManagedResources of the given resourceVersions.
type cache struct {
	client.Reader
	versions map[string]string
}

func (c cache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	all, ok := list.(*resourcesv1alpha1.ManagedResourceList)
	if !ok {
		return fmt.Errorf("a %T was requested", list)
	}
	for name, version := range c.versions {
		all.Items = append(all.Items, resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}})
	}
	return nil
}

func TestDisturbed(t *testing.T) {
	set := NewSet()
	for _, name := range []string{"same", "changed", "gone", "looked-at"} {
		set.Add(types.NamespacedName{Name: name}, "1")
	}
	set.Remove(types.NamespacedName{Name: "looked-at"})
	source := cache{versions: map[string]string{"same": "1", "changed": "2", "looked-at": "2", "never-rested": "1"}}
	for missing, want := range map[bool]string{false: "[/changed]", true: "[/changed /same]"} {
		got, err := set.Disturbed(t.Context(), source, missing)
		slices.SortFunc(got, func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) })
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("events missing %t: %v, %v, want %s", missing, got, err, want)
		}
	}
}
