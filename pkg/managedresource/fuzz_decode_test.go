package managedresource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/test/random"
)

// FuzzCompressed: compressed manifests are what they are without compression, however much they are compressed; what is cut off is a
// problem, never a part; what is too large is a problem, and takes nothing from the other keys of the Secret.
func FuzzCompressed(f *testing.F) {
	f.Add([]byte(configMap("a")+"---\n"), uint16(3), uint16(0))
	f.Add([]byte("# nothing\n"), uint16(60_000), uint16(0))
	f.Add([]byte(configMap("a")), uint16(1), uint16(7))
	f.Add([]byte("[[],"), uint16(30_000), uint16(1))
	f.Add(make([]byte, 1000), uint16(60_000), uint16(2))
	limits := Limits{Bytes: 1 << 16, Documents: 8, Depth: 6, Values: 10_000}
	f.Fuzz(func(t *testing.T, content []byte, times, cut uint16) {
		if len(content) > 1<<12 || len(content)*int(times) > 1<<24 {
			t.Skip()
		}
		plain := bytes.Repeat(content, int(times))
		value := compress(t, plain)
		secret := secretWith(map[string]string{"a.br": value[:max(len(value)-int(cut), 0)], "b": configMap("beside")})
		documents, problems := decodeSecret(secret, limits)
		if !slices.ContainsFunc(documents, func(d document) bool { return strings.Contains(d.source, "'b'") }) &&
			!slices.ContainsFunc(problems, func(p problem) bool {
				return strings.Contains(p.err.Error(), "'b'") || strings.Contains(p.err.Error(), "this one and all after it are left out")
			}) {
			t.Fatal("the key beside is lost in silence")
		}
		documents = slices.DeleteFunc(documents, func(d document) bool { return strings.Contains(d.source, "'b'") })
		texts := strings.Join(textsOf(problems), "\n")
		switch {
		case len(plain) > int(limits.Bytes):
			if len(documents) > 0 || !strings.Contains(texts, "'a.br'") {
				t.Fatalf("%d bytes are accepted: %d objects, %s", len(plain), len(documents), texts)
			}
		case cut > 0:
			if len(documents) > 0 || !strings.Contains(texts, "truncated") {
				t.Fatalf("it was cut off: %d objects, %s", len(documents), texts)
			}
		default:
			want, wantProblems := decodeSecret(secretWith(map[string]string{"a.br": value}), limits)
			direct, directProblems := decodeSecret(secretWith(map[string]string{"a": string(plain)}), limits)
			if len(want) != len(direct) || len(wantProblems) != len(directProblems) || len(documents) > len(direct) {
				t.Fatalf("%d objects compressed, %d plain: %v, %v", len(want), len(direct), textsOf(wantProblems), textsOf(directProblems))
			}
			for i := range want {
				if !reflect.DeepEqual(want[i].object, direct[i].object) {
					t.Fatalf("compressed %v, plain %v", want[i].object, direct[i].object)
				}
			}
		}
	})
}

// FuzzDecodeJSON: an object in JSON is read as what it is, as JSON and as YAML, or there is a problem. Nothing is lost or changed in
// silence.
func FuzzDecodeJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":1}`, `{"a":[1,2.5,-0,1e3,123456789012345678901234567890],"b":{"c":null,"d":true}}`, `{"a":"x\n---\ny: z\n...\n"}`,
		"{\"a\":\"\u2028---\u2028\",\"\u0085\":\"\\u0000\\ud83d\\ude00\"}", `{"y":"yes","no":"0x1","=":"<<","null":"~","1":"1_000","a":"*x"}`,
		`{"kind":"Basket","items":[{"a":1}]}`, `{"kind":"BasketList","items":[{"a":1},{"kind":"x"}]}`, `{"":" "," ":""}`,
	} {
		f.Add([]byte(seed))
	}
	limits := Limits{Bytes: 1 << 16, Documents: 100, Depth: 20, Values: 100_000}
	f.Fuzz(func(t *testing.T, content []byte) {
		var want map[string]any
		if len(content) > 1<<14 || utiljson.Unmarshal(content, &want) != nil || len(want) == 0 || isList(want) || exceedsDepth(want, limits.Depth) {
			t.Skip("no object")
		}
		check := func(form string, text []byte, loose bool) {
			documents, problems := decodeSecret(secretWith(map[string]string{"a": string(text)}), limits)
			if len(problems) > 0 {
				return // which is told
			}
			if len(documents) != 1 {
				t.Fatalf("%d objects in %s: %q", len(documents), form, text)
			}
			got, want := any(documents[0].object), any(want)
			if loose {
				got, want = withFloats(got), withFloats(want)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s is read as %#v, want %#v: %q", form, got, want, text)
			}
		}
		check("JSON", content, false)
		if form, err := yaml.Marshal(want); err == nil {
			check("YAML", form, true)
		}
	})
}

func isList(obj map[string]any) bool {
	kind, _ := obj["kind"].(string)
	return strings.HasSuffix(kind, "List")
}

// withFloats returns a value in which all numbers are floats: YAML writes 1e3 and 1000 alike.
func withFloats(value any) any {
	switch value := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for key, field := range value {
			result[key] = withFloats(field)
		}
		return result
	case []any:
		result := make([]any, 0, len(value))
		for _, item := range value {
			result = append(result, withFloats(item))
		}
		return result
	case int64:
		return float64(value)
	}
	return value
}

// FuzzIgnoredPaths: whatever path is left to others, and whatever the manifest, an object that is sent has its name, kind and marks, the
// field is not in what is sent to an object that lives, and all other fields are.
func FuzzIgnoredPaths(f *testing.F) {
	for _, pointer := range []string{"/spec/replicas", "/*", "/*/name", "/metadata/labels/*", "/metadata/*/*", "/data/*", "/spec/*/*/a~1b", "/~0~1", "//", "/metadata/annotations/x", "/spec/template/spec"} {
		for _, body := range []string{
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"b"}}`,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","labels":{"x":"y"},"annotations":{"x":"y"}},` +
				`"spec":{"replicas":1,"a":[{"b":1,"a/b":2}],"template":{"metadata":{},"spec":{}}}}`,
		} {
			f.Add(pointer, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, pointer string, content []byte) {
		rules, err := ignoreRulesOf(&resourcesv1alpha1.DriftDetection{Ignore: []resourcesv1alpha1.IgnoreRule{{Paths: []string{pointer}}}})
		if err != nil {
			return
		}
		pattern := rules[0].patterns[0]
		documents, _ := decodeSecret(secretWith(map[string]string{"a": string(content)}), testLimits())
		before, _ := decodeSecret(secretWith(map[string]string{"a": string(content)}), testLimits())
		marks := testMarks(map[string]string{"x": "y"})
		plain := render(before, testScopes(), nil, marks)
		marks.ignored = rules
		result := render(documents, testScopes(), nil, marks)
		if len(plain.manifests) != len(result.manifests) || len(plain.problems) != len(result.problems) {
			t.Fatalf("%q makes %d manifests and %d problems of %d and %d", pointer, len(result.manifests), len(result.problems),
				len(plain.manifests), len(plain.problems))
		}
		if pattern[0] != "metadata" || pattern[1] != "labels" && pattern[1] != "*" || pattern[2] != "x" {
			checkRendered(t, desired{manifests: slices.DeleteFunc(slices.Clone(result.manifests), func(m object.Manifest) bool { return m.Directive.Bare })})
		}
		for i, manifest := range result.manifests {
			sent, created, without := decoded(t, manifest.Body), decoded(t, initialOf(manifest)), decoded(t, initialOf(plain.manifests[i]))
			if manifest.Directive.Bare {
				continue
			}
			if pattern.Has(sent) {
				t.Fatalf("%q is in %s", pointer, manifest.Body)
			}
			if !reflect.DeepEqual(created, without) {
				t.Fatalf("%q changes what is created: %v, without it %v", pointer, created, without)
			}
			for _, stripped := range manifest.Stripped {
				stripped.Strip(created)
			}
			if !reflect.DeepEqual(created, sent) {
				t.Fatalf("%q: sent %v, want %v", pointer, sent, created)
			}
		}
	})
}

func initialOf(manifest object.Manifest) []byte {
	if manifest.Initial != nil {
		return manifest.Initial
	}
	return manifest.Body
}

func decoded(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var obj map[string]any
	if err := json.Unmarshal(body, &obj); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return obj
}

// FuzzInventory: an inventory that is stored and read is the same, in whatever order, and nothing of it is dropped to make it fit.
func FuzzInventory(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5}, "a", "b/c", uint16(3))
	f.Add([]byte{9, 9, 9}, "", "\x00\xff", uint16(2000))
	f.Fuzz(func(t *testing.T, data []byte, first, second string, count uint16) {
		r := random.From(data)
		inv := inventory{}
		for i := range count % 400 {
			manifest := manifestOf(oneOf(r, configMapKind, secretKind, widgetKind, deploymentKind), oneOf(r, "", "a", first), fmt.Sprint(oneOf(r, "x", second), i))
			manifest.Labels = oneOf(r, nil, map[string]string{}, map[string]string{first: second})
			manifest.Annotations = oneOf(r, nil, map[string]string{second: first},
				map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "canary", first: "x"})
			inv[manifest.Key()] = entryOf(manifest, oneOf(r, "", "sent.owned"))
		}
		references := inv.references()
		if again := inventoryOf(references, nil); !reflect.DeepEqual(again, inv) {
			t.Fatalf("%d objects are stored, and %d read, or others", len(inv), len(again))
		}
		status, err := fit(resourcesv1alpha1.ManagedResourceStatus{Resources: references}, resourcesv1alpha1.ManagedResourceSpec{})
		if err != nil {
			return
		}
		if sizeOf(status) > greatestStatus || len(status.Resources) != len(inv) {
			t.Fatalf("%d of %d objects in %d bytes", len(status.Resources), len(inv), sizeOf(status))
		}
		for _, reference := range status.Resources {
			if want := inv[refOfEntry(reference).Key()]; reference.Digest != want.Digest || reference.Name != want.Name {
				t.Fatalf("%+v became %+v", want, reference)
			}
			if strings.Contains(reference.Annotations["kubectl.kubernetes.io/last-applied-configuration"], "canary") && first != "kubectl.kubernetes.io/last-applied-configuration" {
				t.Fatalf("%+v repeats the whole object", reference)
			}
		}
	})
}
