package apiserver

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// examples returns the examples of all resources that the API server serves.
func examples(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(t, err)
	files, err := filepath.Glob(filepath.Join(root, "examples", "fleet", "*", "*.yaml"))
	kit.Must(t, err)
	var all []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		kit.Must(t, err)
		for _, document := range bytes.Split(content, []byte("\n---\n")) {
			object := &unstructured.Unstructured{}
			encoded, err := yaml.YAMLToJSON(document)
			kit.Must(t, err)
			kit.Must(t, object.UnmarshalJSON(encoded))
			if served.Of(object.GroupVersionKind()).Name != "" {
				all = append(all, object)
			}
		}
	}
	return all
}

// TestExamplesLive creates, reads, updates and deletes the example of every kind. The stored objects have all fields of the
// examples.
func TestExamplesLive(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	shown := map[schema.GroupVersionKind]bool{}
	for _, example := range examples(t) {
		shown[example.GroupVersionKind()] = true
		t.Run(example.GroupVersionKind().GroupVersion().Identifier()+" "+example.GetKind()+" "+example.GetName(), func(t *testing.T) {
			ensureNamespace(t, c, example.GetNamespace())
			ensureParent(t, c, example, "parent-of-examples")
			created := example.DeepCopy()
			kit.Must(t, c.Create(t.Context(), created, client.FieldValidation("Strict")))
			// Convert to the form of the Go type, because durations and quantities have several forms.
			delete(example.Object, "status")
			typed, err := c.Scheme().New(example.GroupVersionKind())
			kit.Must(t, err)
			kit.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(example.Object, typed))
			encoded, err := json.Marshal(typed)
			kit.Must(t, err)
			kit.Must(t, example.UnmarshalJSON(encoded))
			delete(example.Object, "status")
			delete(example.Object, "stringData") // write-only
			unstructured.RemoveNestedField(example.Object, "metadata", "creationTimestamp")
			if lost := missing(example.Object, created.Object, ""); len(lost) > 0 {
				t.Errorf("the created object lacks %s", strings.Join(lost, ", "))
			}
			read := &unstructured.Unstructured{}
			read.SetGroupVersionKind(example.GroupVersionKind())
			kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(example), read))
			if !equality.Semantic.DeepEqual(read.Object, created.Object) {
				t.Errorf("read\n%v\nbut created\n%v", read.Object, created.Object)
			}
			labels := read.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels["test"] = "updated"
			read.SetLabels(labels)
			kit.Must(t, c.Update(t.Context(), read))
			if read.GetGeneration() != created.GetGeneration() {
				t.Errorf("a label changed the generation from %d to %d", created.GetGeneration(), read.GetGeneration())
			}
			read.SetFinalizers(nil)
			confirmDeletion(read)
			kit.Must(t, c.Update(t.Context(), read))
			kit.Must(t, c.Delete(t.Context(), read))
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(example), read); !apierrors.IsNotFound(err) {
				t.Errorf("reading the deleted object: %v, want NotFound", err)
			}
		})
	}
	for _, resource := range served.Resources() {
		old := resource.Version == "v1beta1" && resource.Kind == "ControllerDeployment"
		if !shown[resource.GroupVersionKind] && !old {
			t.Errorf("%s has no example", resource.GroupVersionKind)
		}
	}
}

func ensureNamespace(t *testing.T, c client.Client, name string) {
	t.Helper()
	if name == "" {
		return
	}
	namespace := &corev1.Namespace{}
	namespace.Name = name
	if err := c.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if name != constants.GardenNamespace {
		return
	}
	// Shoots in this namespace tolerate protected Seeds, which only its Project allows.
	project := &gardencorev1beta1.Project{}
	project.Name, project.Spec.Namespace = "garden", ptr(name)
	kit.Must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), project)))
}

// missing returns the paths of wanted values that an object lacks.
func missing(want, got any, path string) []string {
	switch want := want.(type) {
	case map[string]any:
		found, ok := got.(map[string]any)
		if !ok && len(want) > 0 {
			return []string{path}
		}
		var lost []string
		for key, value := range want {
			lost = append(lost, missing(value, found[key], path+"."+key)...)
		}
		return lost
	case []any:
		found, ok := got.([]any)
		if !ok || len(found) < len(want) {
			return []string{path}
		}
		var lost []string
		for i, value := range want {
			lost = append(lost, missing(value, found[i], path+"[]")...)
		}
		return lost
	default:
		if !equality.Semantic.DeepEqual(want, got) {
			return []string{path}
		}
		return nil
	}
}
