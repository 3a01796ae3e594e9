// Package golden compares computed objects of components and plans of extensions with golden files.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

// Check compares objects with the file testdata/<name>.yaml, which -update writes.
func Check(t *testing.T, name string, objects []client.Object) {
	t.Helper()
	CheckText(t, name+".yaml", string(Text(t, objects)))
}

// CheckText compares a text with the file testdata/<name>, which -update writes.
func CheckText(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: write it with -update", err)
	}
	if got != string(want) {
		t.Errorf("the text differs from %s: run with -update and see git diff; got\n%s", path, got)
	}
}

// Text returns objects as a flow would write them, in their order.
func Text(t *testing.T, objects []client.Object) []byte {
	t.Helper()
	var text bytes.Buffer
	for _, object := range objects {
		content, err := yaml.Marshal(Unstructured(t, object).Object)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n")
		text.Write(content)
	}
	return text.Bytes()
}

// Unstructured returns an object with its kind and without its status.
func Unstructured(t *testing.T, object client.Object) *unstructured.Unstructured {
	t.Helper()
	kind, err := apiutil.GVKForObject(object, scheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	result := &unstructured.Unstructured{Object: content}
	result.SetGroupVersionKind(kind)
	unstructured.RemoveNestedField(result.Object, "status")
	unstructured.RemoveNestedField(result.Object, "metadata", "creationTimestamp")
	return result
}
