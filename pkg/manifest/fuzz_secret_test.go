package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/object"
)

func FuzzDecodeSecret(f *testing.F) {
	for _, seed := range []string{
		configMap("a") + "---\n" + configMap("b"), "\ufeff---\r\n{a: 1}\r\n", "--- x", "...", "%YAML 1.1\n---\na: 1",
		`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}},7]}{}`,
		`{"apiVersion":"v1","kind":"RoleList","items":[{"metadata":{"name":"a","labels":{"a":1}}}]}`,
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: x\nstringData: {a: b}\n", "a: &a [*a]", "? {a: b}\n: c",
		strings.Replace(widgetDefinition, "SCOPE", "Cluster", 1) + "---\n" + widget,
		"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {jobTemplate: {spec: {template: {spec: {}}}}}\n",
		compress(f, []byte(configMap("a"))), compress(f, make([]byte, 1<<18)), strings.Repeat("[", 500), "\x00\xff",
		`{"apiVersion":"/","kind":"A","metadata":{"name":"a"}}`,
	} {
		f.Add([]byte(seed))
	}
	limits := Limits{Bytes: 1 << 16, Documents: 8, Depth: 6, Values: 10_000}

	f.Fuzz(func(t *testing.T, content []byte) {
		for _, key := range []string{"a.yaml", "a.yaml.br"} {
			secret := secretWith(map[string]string{key: string(content)})
			documents, problems := decodeSecret(secret, limits)
			if len(documents) > limits.Documents {
				t.Fatalf("%d objects, the limit is %d", len(documents), limits.Documents)
			}
			for _, document := range documents {
				if exceedsDepth(document.Object, limits.Depth) {
					t.Fatalf("an object is deeper than %d levels", limits.Depth)
				}
				expectContains(t, document.Source, key, "garden/manifests")
			}
			for _, text := range textsOf(problems) {
				expectContains(t, text, key, "garden/manifests")
			}
			checkRendered(t, Render(documents, testScopes(), nil, testMarks(map[string]string{"x": "y"})))
		}
	})
}

// checkRendered checks the invariants of rendered manifests for any input.
func checkRendered(t *testing.T, result Rendered) {
	t.Helper()
	var previous object.Key
	for i, manifest := range result.Manifests {
		var body struct {
			Kind     string
			Metadata struct {
				Namespace, Name     string
				Labels, Annotations map[string]string
			}
		}
		if err := json.Unmarshal(manifest.Body, &body); err != nil {
			t.Fatalf("the body is not an object: %v\n%s", err, manifest.Body)
		}
		if body.Kind != manifest.Kind || body.Metadata.Name != manifest.Name ||
			body.Metadata.Namespace != manifest.Namespace || manifest.Name == "" {
			t.Fatalf("%s does not match its body: %s", manifest.Ref, manifest.Body)
		}
		if body.Metadata.Labels[managedByKey] != "gardener" || body.Metadata.Labels["x"] != "y" ||
			body.Metadata.Annotations[originKey] != "garden/shop" {
			t.Fatalf("%s is not marked: %s", manifest.Ref, manifest.Body)
		}
		if len(manifest.Stripped) == 0 && manifest.Digest != object.Digest(manifest.Body) || manifest.Source == "" {
			t.Fatalf("%s has the digest %q and the source %q", manifest.Ref, manifest.Digest, manifest.Source)
		}
		if i > 0 && previous.Compare(manifest.Key()) >= 0 {
			t.Fatalf("%s comes after %s", manifest.Key(), previous)
		}
		previous = manifest.Key()
	}
}
