// Package charts applies charts of this repository in tests.
package charts

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/hack/chart/generate"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// Apply applies the selected objects of a chart. Its release is in the namespace garden.
func Apply(tb testing.TB, to client.Client, chart string, values map[string]any, wanted func(*unstructured.Unstructured) bool) {
	tb.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(tb, err)
	loaded, err := generate.LoadFrom(filepath.Join(root, "charts", chart))
	kit.Must(tb, err)
	files, err := generate.Render(loaded, "garden", values)
	kit.Must(tb, err)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for document := range strings.SplitSeq(files[name], "\n---\n") {
			object := &unstructured.Unstructured{}
			kit.Must(tb, yaml.Unmarshal([]byte(document), &object.Object))
			if len(object.Object) == 0 || !wanted(object) {
				continue
			}
			kit.Must(tb, to.Apply(tb.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"), client.ForceOwnership))
		}
	}
}

// IsRight reports whether an object grants or restricts rights, or is a ServiceAccount.
func IsRight(object *unstructured.Unstructured) bool {
	return strings.HasPrefix(object.GetAPIVersion(), "rbac.") || strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy") ||
		object.GetKind() == "ServiceAccount"
}
