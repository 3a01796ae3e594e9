package cachetransform

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func TestCompact(t *testing.T) {
	compactor := NewCompactor()
	of := func(name, label string) *resourcesv1alpha1.ManagedResource {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}}}
		mr.Status.Resources = append(make([]resourcesv1alpha1.ObjectReference, 0, 16), resourcesv1alpha1.ObjectReference{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name, Digest: "d", Labels: map[string]string{"a": label},
		})
		mr.Status.Conditions = append(make([]resourcesv1alpha1.Condition, 0, 4), resourcesv1alpha1.Condition{
			Type: resourcesv1alpha1.ResourcesApplied, Status: resourcesv1alpha1.ConditionTrue, Reason: "R", Message: strings.Clone("All is well."),
		})
		return mr
	}
	compact := func(mr *resourcesv1alpha1.ManagedResource) *resourcesv1alpha1.ManagedResource {
		result, err := compactor.Compact(mr)
		if err != nil {
			t.Fatal(err)
		}
		mr, ok := result.(*resourcesv1alpha1.ManagedResource)
		if !ok {
			t.Fatalf("got a %T", result)
		}
		return mr
	}
	one, two, other := compact(of("one", "1")), compact(of("two", "1")), compact(of("other", "2"))
	for _, mr := range []*resourcesv1alpha1.ManagedResource{one, two, other} {
		want := of(mr.Name, mr.Status.Resources[0].Labels["a"])
		want.ManagedFields = nil
		if !reflect.DeepEqual(mr, want) || cap(mr.Status.Resources) != 1 || cap(mr.Status.Conditions) != 1 {
			t.Errorf("got %+v, want %+v", mr, want)
		}
	}
	pointer := func(mr *resourcesv1alpha1.ManagedResource) uintptr {
		return reflect.ValueOf(mr.Status.Resources[0].Labels).Pointer()
	}
	if pointer(one) != pointer(two) || pointer(one) == pointer(other) {
		t.Error("equal labels do not share memory")
	}
	if unsafe.StringData(one.Status.Conditions[0].Message) != unsafe.StringData(two.Status.Conditions[0].Message) {
		t.Error("equal messages do not share memory")
	}
	for i := range 2 * pooledMaps {
		compact(of("many", fmt.Sprint(i)))
	}
	if len(compactor.pool) > pooledMaps {
		t.Errorf("the pool grew to %d", len(compactor.pool))
	}
	if obj, err := compactor.Compact("another type"); obj != "another type" || err != nil {
		t.Error("an object of another type was changed")
	}
}
