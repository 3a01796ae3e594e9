package references

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "garden", Name: name} }

func configMap(data map[string]string, binary map[string][]byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta("config"), Data: data, BinaryData: binary}
}

func secret(kind corev1.SecretType, data map[string][]byte, text map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: meta("config"), Type: kind, Data: data, StringData: text}
}

func TestMakeUnique(t *testing.T) {
	a, b := map[string]string{"a": "1"}, map[string][]byte{"a": []byte("1")}
	both := map[string]string{"a": "1", "b": "2"}
	// All objects of a row must get the same name, and each row another one.
	rows := [][]runtime.Object{
		{configMap(nil, nil), configMap(map[string]string{}, map[string][]byte{})},
		{configMap(a, nil), configMap(a, nil)},
		{configMap(nil, b)},
		{configMap(both, nil), configMap(map[string]string{"b": "2", "a": "1"}, nil)},
		{configMap(map[string]string{"a": "1b", "": "2"}, nil)},
		{configMap(map[string]string{"a": "\xff"}, nil)},
		{secret("", b, nil), secret(corev1.SecretTypeOpaque, nil, a), secret("", map[string][]byte{"a": []byte("2")}, a)},
		{secret("x", b, nil)},
		{secret("", b, map[string]string{"b": "2"})},
	}
	valid := regexp.MustCompile(`^config-[0-9a-f]{8}$`)
	seen := map[string]int{}
	for i, row := range rows {
		for _, obj := range row {
			if err := MakeUnique(obj); err != nil {
				t.Fatal(err)
			}
			object, ok := obj.(metav1.Object)
			if !ok {
				t.Fatalf("%T has no metadata", obj)
			}
			id := fmt.Sprintf("%T %s", obj, object.GetName())
			if first, found := seen[id]; found && first != i {
				t.Errorf("rows %d and %d have the name %s", first, i, id)
			} else if seen[id] = i; !valid.MatchString(object.GetName()) {
				t.Errorf("row %d has the name %s", i, object.GetName())
			}
			if object.GetLabels()["resources.gardener.cloud/garbage-collectable-reference"] != "true" {
				t.Errorf("row %d has the labels %v", i, object.GetLabels())
			}
		}
	}
	if len(seen) != len(rows) {
		t.Errorf("%d rows have %d names: %v", len(rows), len(seen), seen)
	}
}

// TestMakeUniqueName checks that the names do not change between versions. Otherwise all clients would create all objects
// again.
func TestMakeUniqueName(t *testing.T) {
	one, other := configMap(map[string]string{"a": "1"}, nil), secret("", nil, map[string]string{"a": "1"})
	if err := errors.Join(MakeUnique(one), MakeUnique(other)); err != nil {
		t.Fatal(err)
	}
	// echo -n '{"text":{"a":"1"}}' | sha256sum, and of '{"data":{"a":"MQ=="}}'
	if one.Name != "config-5a104889" || other.Name != "config-de7eb60f" {
		t.Errorf("the names have changed to %s and %s", one.Name, other.Name)
	}
	if !ptr.Deref(one.Immutable, false) || !ptr.Deref(other.Immutable, false) {
		t.Error("the objects are not immutable")
	}
}

func TestMakeUniqueKeepsTheRest(t *testing.T) {
	shared := map[string]string{"mine": "stays"}
	obj := secret("", nil, map[string]string{"a": "1"})
	obj.Labels = shared
	if err := MakeUnique(obj); err != nil {
		t.Fatal(err)
	}
	if obj.Labels["mine"] != "stays" || len(obj.Labels) != 2 || len(shared) != 1 || obj.Data != nil || obj.StringData["a"] != "1" {
		t.Errorf("got %+v, and the shared labels are %v", obj, shared)
	}
}

func TestMakeUniqueBadInput(t *testing.T) {
	for name, test := range map[string]struct {
		obj  runtime.Object
		want string
	}{
		"another kind":   {&corev1.Pod{}, "cannot make a *v1.Pod unique"},
		"nothing":        {nil, "cannot make a <nil> unique"},
		"no name":        {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}}, "cannot make a Secret without a name unique"},
		"a long name":    {&corev1.ConfigMap{ObjectMeta: meta(strings.Repeat("x", 245))}, "must be no more than 253"},
		"a name of none": {&corev1.ConfigMap{ObjectMeta: meta("A b")}, "is not a valid name"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := MakeUnique(test.obj); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if obj, ok := test.obj.(*corev1.ConfigMap); ok && (obj.Labels != nil || obj.Immutable != nil) {
				t.Error("the object was changed despite the error")
			}
		})
	}
	longest := &corev1.ConfigMap{ObjectMeta: meta(strings.Repeat("x", 244))}
	if err := MakeUnique(longest); err != nil || len(longest.Name) != 253 {
		t.Errorf("for the longest possible name: %v", err)
	}
}
