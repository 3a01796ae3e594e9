package v1alpha1

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	examplePath       = "../../../../examples/config/resource-manager.yaml"
	documentationPath = "../../../../docs/configuration.md"
)

// TestExampleAndDocumentationAreComplete checks that the example sets every field and that the documentation has a row for it.
func TestExampleAndDocumentationAreComplete(t *testing.T) {
	if _, err := Load(examplePath); err != nil {
		t.Error(err)
	}
	documentation := readFile(t, documentationPath)
	var example map[string]any
	if err := yaml.Unmarshal([]byte(readFile(t, examplePath)), &example); err != nil {
		t.Fatal(err)
	}
	paths := leafPaths(reflect.TypeFor[ResourceManagerConfiguration](), "")
	if len(paths) < 80 {
		t.Fatalf("found only %d fields", len(paths))
	}
	for _, path := range paths {
		if !strings.Contains(documentation, "\n| `"+path+"` |") {
			t.Errorf("%s has no row in %s", path, documentationPath)
		}
		if !contains(example, strings.Split(path, ".")) {
			t.Errorf("%s is not in %s", path, examplePath)
		}
	}
}

// leafPaths returns the paths of all fields that are not structs of this package or of component-base.
func leafPaths(t reflect.Type, prefix string) []string {
	var paths []string
	for name, fieldType := range jsonFields(t) {
		if fieldType.Kind() == reflect.Pointer {
			fieldType = fieldType.Elem()
		}
		ours := strings.Contains(fieldType.PkgPath(), "/config/v1alpha1")
		if fieldType.Kind() == reflect.Struct && ours {
			paths = append(paths, leafPaths(fieldType, prefix+name+".")...)
		} else {
			paths = append(paths, prefix+name)
		}
	}
	return paths
}

func contains(tree any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	object, _ := tree.(map[string]any)
	child, ok := object[path[0]]
	return ok && contains(child, path[1:])
}

func readFile(tb testing.TB, path string) string {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}
