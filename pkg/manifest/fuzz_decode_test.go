package manifest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// FuzzCompressed checks that compressed manifests decode to the same objects as plain ones, whatever the compression ratio.
// Truncated data is a problem, and never results in a part of the objects. Data that is too large is a problem, and does not
// affect the other keys of the Secret.
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
		if !slices.ContainsFunc(documents, func(d Document) bool { return strings.Contains(d.Source, "'b'") }) &&
			!slices.ContainsFunc(problems, func(err error) bool {
				return strings.Contains(err.Error(), "'b'") || strings.Contains(err.Error(), "this one and all later ones are skipped")
			}) {
			t.Fatal("the other key is silently lost")
		}
		documents = slices.DeleteFunc(documents, func(d Document) bool { return strings.Contains(d.Source, "'b'") })
		texts := strings.Join(textsOf(problems), "\n")
		switch {
		case len(plain) > int(limits.Bytes):
			if len(documents) > 0 || !strings.Contains(texts, "'a.br'") {
				t.Fatalf("%d bytes are accepted: %d objects, %s", len(plain), len(documents), texts)
			}
		case cut > 0:
			if len(documents) > 0 || !strings.Contains(texts, "truncated") {
				t.Fatalf("for truncated data: %d objects, %s", len(documents), texts)
			}
		default:
			want, wantProblems := decodeSecret(secretWith(map[string]string{"a.br": value}), limits)
			direct, directProblems := decodeSecret(secretWith(map[string]string{"a": string(plain)}), limits)
			if len(want) != len(direct) || len(wantProblems) != len(directProblems) || len(documents) > len(direct) {
				t.Fatalf("%d objects compressed, %d plain: %v, %v", len(want), len(direct), textsOf(wantProblems), textsOf(directProblems))
			}
			for i := range want {
				if !reflect.DeepEqual(want[i].Object, direct[i].Object) {
					t.Fatalf("compressed %v, plain %v", want[i].Object, direct[i].Object)
				}
			}
		}
	})
}

// FuzzDecodeJSON checks that an object in JSON is decoded unchanged, as JSON and as YAML, or that there is a problem. Nothing
// is silently lost or changed.
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
			t.Skip("not an object")
		}
		check := func(form string, text []byte, loose bool) {
			documents, problems := decodeSecret(secretWith(map[string]string{"a": string(text)}), limits)
			if len(problems) > 0 {
				return // which is reported
			}
			if len(documents) != 1 {
				t.Fatalf("%d objects in %s: %q", len(documents), form, text)
			}
			got, want := any(documents[0].Object), any(want)
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

// withFloats returns a value in which all numbers are floats, because YAML does not distinguish 1e3 from 1000.
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

// FuzzIgnoredPaths checks any path that is left to other clients, with any manifest: an object that is sent has its name, kind
// and marks. The request for an existing object contains all fields except the ignored one.
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
		rules, err := ParseIgnoreRules(&resourcesv1alpha1.DriftDetection{Ignore: []resourcesv1alpha1.IgnoreRule{{Paths: []string{pointer}}}})
		if err != nil {
			return
		}
		pattern := rules[0].patterns[0]
		documents, _ := decodeSecret(secretWith(map[string]string{"a": string(content)}), testLimits())
		before, _ := decodeSecret(secretWith(map[string]string{"a": string(content)}), testLimits())
		marks := testMarks(map[string]string{"x": "y"})
		plain := Render(before, testScopes(), nil, marks)
		marks.Ignored = rules
		result := Render(documents, testScopes(), nil, marks)
		if len(plain.Manifests) != len(result.Manifests) || len(plain.Errors) != len(result.Errors) {
			t.Fatalf("%q results in %d manifests and %d problems, without it %d and %d", pointer, len(result.Manifests), len(result.Errors),
				len(plain.Manifests), len(plain.Errors))
		}
		if pattern[0] != "metadata" || pattern[1] != "labels" && pattern[1] != "*" || pattern[2] != "x" {
			checkRendered(t, Rendered{Manifests: slices.DeleteFunc(slices.Clone(result.Manifests), func(m object.Manifest) bool { return m.Directive.Bare })})
		}
		for i, manifest := range result.Manifests {
			sent, created, without := decoded(t, manifest.Body), decoded(t, initialOf(manifest)), decoded(t, initialOf(plain.Manifests[i]))
			if manifest.Directive.Bare {
				continue
			}
			if pattern.Has(sent) {
				t.Fatalf("%q is in %s", pointer, manifest.Body)
			}
			if !reflect.DeepEqual(created, without) {
				t.Fatalf("%q changes the created object: %v, without it %v", pointer, created, without)
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
