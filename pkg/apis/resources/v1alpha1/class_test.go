package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestFinalizerOf(t *testing.T) {
	for class, want := range map[string]string{"": Finalizer, "resources": Finalizer, "*": Finalizer, "blue": Finalizer + "-blue"} {
		if got := FinalizerOf(class); got != want {
			t.Errorf("class %q has the finalizer %q, want %q", class, got, want)
		}
	}
}

func TestHasClass(t *testing.T) {
	for _, test := range []struct {
		wanted     *string
		configured string
		want       bool
	}{
		{nil, "resources", true},
		{ptr.To(""), "resources", true},
		{ptr.To("resources"), "resources", true},
		{ptr.To("blue"), "resources", false},
		{nil, "blue", false},
		{ptr.To(""), "blue", false},
		{ptr.To("blue"), "blue", true},
		{ptr.To("Blue"), "blue", false},
		{ptr.To("red"), "blue", false},
		{nil, "*", true},
		{ptr.To("blue"), "*", true},
		{ptr.To("*"), "resources", false},
	} {
		mr := &ManagedResource{Spec: ManagedResourceSpec{Class: test.wanted}}
		if got := HasClass(mr, test.configured); got != test.want {
			t.Errorf("class %v is handled by %q: %v, want %v", ptr.Deref(test.wanted, "<nil>"), test.configured, got, test.want)
		}
	}
}

func TestHeldByOther(t *testing.T) {
	const own, blue, red = Finalizer, Finalizer + "-blue", Finalizer + "-red"
	for _, test := range []struct {
		class      string
		finalizers []string
		want       bool
	}{
		{"resources", nil, false},
		{"resources", []string{own}, false},
		{"*", []string{own}, false},
		{"resources", []string{"example.com/x"}, false},
		{"resources", []string{blue}, true},
		{"resources", []string{own, blue}, true},
		{"blue", []string{blue, "example.com/x"}, false},
		{"blue", []string{own}, true},
		{"blue", []string{red, blue}, true},
	} {
		mr := &ManagedResource{ObjectMeta: metav1.ObjectMeta{Finalizers: test.finalizers}}
		if got := HeldByOther(mr, test.class); got != test.want {
			t.Errorf("class %q, finalizers %v: held by another class: %v", test.class, test.finalizers, got)
		}
	}
}
