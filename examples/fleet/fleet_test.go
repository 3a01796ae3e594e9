// Package fleet tests the example manifests of the garden's API.
package fleet

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.SchemeBuilder{
		served.AddToScheme, settingsv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme, operatorv1alpha1.AddToScheme, druidv1alpha1.AddToScheme,
	}
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// TestExamplesAreValid reads all examples strictly: each field is one of the kind, and each kind has an example, in the
// directory of its group and in the file of its name. Those beside these directories are examples of what can be done with a kind.
func TestExamplesAreValid(t *testing.T) {
	scheme := newScheme(t)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	shown := map[schema.GroupVersionKind]bool{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, document := range bytes.Split(content, []byte("\n---\n")) {
			_, kind, err := decoder.Decode(document, nil, nil)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			group, _, _ := strings.Cut(kind.Group, ".")
			if want := filepath.Join(group, strings.ToLower(kind.Kind)+".yaml"); path != want && filepath.Dir(path) != "." {
				t.Errorf("%s has a %s, which belongs in %s", path, kind.Kind, want)
			}
			shown[*kind] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind, of := range scheme.AllKnownTypes() {
		if strings.Contains(of.PkgPath(), "/trellis/") && !isList(of) && !shown[kind] {
			t.Errorf("%s has no example", kind)
		}
	}
}

func isList(of reflect.Type) bool {
	_, has := of.FieldByName("Items")
	return has
}
