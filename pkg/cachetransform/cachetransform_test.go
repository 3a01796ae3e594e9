package cachetransform

import (
	"maps"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOf(t *testing.T) {
	name := Of(func(secret *corev1.Secret) string { return secret.Name })
	for _, test := range []struct{ in, want any }{
		{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, "s"},
		{"a tombstone", "a tombstone"},
	} {
		if got, err := name(test.in); err != nil || got != test.want {
			t.Errorf("%v: got %v, %v; want %v", test.in, got, err, test.want)
		}
	}
}

func TestMeta(t *testing.T) {
	now := metav1.Now()
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden", Name: "s", UID: "1", ResourceVersion: "2", DeletionTimestamp: &now,
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"e"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "f"}}, Generation: 3,
	}}
	want := metav1.ObjectMeta{Namespace: "garden", Name: "s", UID: "1", ResourceVersion: "2", DeletionTimestamp: &now}
	if got := Meta(object); !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestKeepKeysAndFilterKeys(t *testing.T) {
	values := map[string]string{"a": "1", "b": "2", "bc": "3"}
	for _, c := range []struct {
		name      string
		got, want map[string]string
	}{
		{"some keys", KeepKeys(values, "a", "bc", "x"), map[string]string{"a": "1", "bc": "3"}},
		{"no key", KeepKeys(values, "x"), nil},
		{"of nothing", KeepKeys(nil, "a"), nil},
		{"by what they are", FilterKeys(values, func(key string) bool { return strings.HasPrefix(key, "b") }), map[string]string{"b": "2", "bc": "3"}},
		{"none is", FilterKeys(values, func(string) bool { return false }), nil},
	} {
		if !maps.Equal(c.got, c.want) || (c.got == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestIntern(t *testing.T) {
	one, other := Intern(strings.Clone("garden")), Intern(strings.Clone("garden"))
	if one != other || unsafe.StringData(one) != unsafe.StringData(other) {
		t.Error("equal strings do not share memory")
	}
}
