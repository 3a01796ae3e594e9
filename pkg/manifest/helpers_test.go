package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

var (
	configMapKind  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secretKind     = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	namespaceKind  = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	widgetKind     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
)

// testLimits returns small limits, so that tests reach them with little input.
func testLimits() Limits {
	return Limits{Bytes: 1 << 20, Documents: 100, Depth: 20, Values: 100_000}
}

func testMarks(injectLabels map[string]string) RenderOptions {
	return RenderOptions{Origin: "garden/shop", ManagedBy: "gardener", InjectLabels: injectLabels}
}

func testScopes() map[schema.GroupVersionKind]Scope {
	return map[schema.GroupVersionKind]Scope{
		configMapKind: ScopeNamespaced, secretKind: ScopeNamespaced, deploymentKind: ScopeNamespaced,
		namespaceKind: ScopeCluster,
	}
}

func secretWith(data map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "manifests"}, Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret
}

// decodeText decodes a Secret with one key.
func decodeText(text string) ([]Document, []error) {
	return decodeSecret(secretWith(map[string]string{"a.yaml": text}), testLimits())
}

// configMap returns the manifest of a ConfigMap as YAML.
func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

func compress(tb testing.TB, plain []byte) string {
	tb.Helper()
	var buffer bytes.Buffer
	writer := brotli.NewWriterLevel(&buffer, brotli.DefaultCompression)
	if _, err := writer.Write(plain); err != nil {
		tb.Fatalf("compress: %v", err)
	}
	if err := writer.Close(); err != nil {
		tb.Fatalf("compress: %v", err)
	}
	return buffer.String()
}

// namesOf returns the names of the objects, in order and separated by spaces.
func namesOf(documents []Document) string {
	names := make([]string, 0, len(documents))
	for _, document := range documents {
		meta, _ := document.Object["metadata"].(map[string]any)
		names = append(names, fmt.Sprint(meta["name"]))
	}
	return strings.Join(names, " ")
}

func textsOf(problems []error) []string {
	texts := make([]string, 0, len(problems))
	for _, problem := range problems {
		texts = append(texts, problem.Error())
	}
	return texts
}

// renderOne renders a single document that must be valid.
func renderOne(t *testing.T, text string, options RenderOptions) object.Manifest {
	t.Helper()
	documents, problems := decodeText(text)
	if len(problems) > 0 {
		t.Fatalf("decode: %v", textsOf(problems))
	}
	result := Render(documents, testScopes(), nil, options)
	if len(result.Errors) > 0 || len(result.Manifests) != 1 {
		t.Fatalf("render returned %d manifests and %v, want one manifest", len(result.Manifests), textsOf(result.Errors))
	}
	return result.Manifests[0]
}

// fieldOf returns a field of a manifest's body.
func fieldOf(t *testing.T, manifest object.Manifest, path ...any) any {
	t.Helper()
	body := manifest.Body
	if manifest.Initial != nil {
		body = manifest.Initial
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("the body is not JSON: %v", err)
	}
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := value.(map[string]any)
			value = fields[step]
		case int:
			items, _ := value.([]any)
			if step >= len(items) {
				return nil
			}
			value = items[step]
		}
	}
	return value
}

func manifestOf(gvk schema.GroupVersionKind, namespace, name string) object.Manifest {
	return object.Manifest{
		Ref:    object.Ref{GroupVersionKind: gvk, Namespace: namespace, Name: name},
		Digest: "sent",
	}
}

func entry(gvk schema.GroupVersionKind, namespace, name string) resourcesv1alpha1.ObjectReference {
	return resourcesv1alpha1.ObjectReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: namespace, Name: name}
}

func recordedWith(entries ...resourcesv1alpha1.ObjectReference) map[object.Key]resourcesv1alpha1.ObjectReference {
	recorded := map[object.Key]resourcesv1alpha1.ObjectReference{}
	for _, entry := range entries {
		gvk := schema.FromAPIVersionAndKind(entry.APIVersion, entry.Kind)
		recorded[object.Ref{GroupVersionKind: gvk, Namespace: entry.Namespace, Name: entry.Name}.Key()] = entry
	}
	return recorded
}

func expectContains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not contain %q", text, part)
		}
	}
}
