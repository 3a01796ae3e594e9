package manifest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

func refOfKind(gvk schema.GroupVersionKind, namespace string) object.Ref {
	return object.Ref{GroupVersionKind: gvk, Namespace: namespace, Name: "x"}
}

func TestNamespaceOf(t *testing.T) {
	recordedIn := func(namespace string) map[object.Key]resourcesv1alpha1.ObjectReference {
		return recordedWith(entry(widgetKind, namespace, "x"))
	}
	otherVersion := widgetKind.GroupKind().WithVersion("v2")

	for name, test := range map[string]struct {
		namespace string
		scope     Scope
		recorded  map[object.Key]resourcesv1alpha1.ObjectReference
		want      string
	}{
		"namespaced, given":                     {"shop", ScopeNamespaced, nil, "shop"},
		"namespaced, not given":                 {"", ScopeNamespaced, nil, "default"},
		"namespaced, recorded without":          {"", ScopeNamespaced, recordedIn(""), "default"},
		"cluster-scoped, not given":             {"", ScopeCluster, nil, ""},
		"cluster-scoped, given":                 {"shop", ScopeCluster, nil, ""},
		"cluster-scoped, recorded with":         {"", ScopeCluster, recordedIn("default"), ""},
		"unknown, given, not recorded":          {"shop", ScopeUnknown, nil, "shop"},
		"unknown, given, recorded so":           {"shop", ScopeUnknown, recordedIn("shop"), "shop"},
		"unknown, given, recorded without":      {"shop", ScopeUnknown, recordedIn(""), ""},
		"unknown, given, recorded both ways":    {"shop", ScopeUnknown, recordedWith(entry(widgetKind, "", "x"), entry(widgetKind, "shop", "x")), "shop"},
		"unknown, given, recorded elsewhere":    {"shop", ScopeUnknown, recordedIn("bank"), "shop"},
		"unknown, not given, not recorded":      {"", ScopeUnknown, nil, "default"},
		"unknown, not given, recorded without":  {"", ScopeUnknown, recordedIn(""), ""},
		"unknown, not given, recorded default":  {"", ScopeUnknown, recordedIn("default"), "default"},
		"unknown, not given, another's default": {"", ScopeUnknown, recordedWith(entry(widgetKind, "", "y")), "default"},
		"unknown, recorded in another version":  {"", ScopeUnknown, recordedWith(entry(otherVersion, "", "x")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := namespaceOf(refOfKind(widgetKind, test.namespace), test.scope, test.recorded); got != test.want {
				t.Errorf("got namespace %q, want %q", got, test.want)
			}
		})
	}
}

func TestRefOf(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		want    string
		problem string
	}{
		"core":                    {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, "v1/ConfigMap/a", ""},
		"group":                   {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n"}}`, "apps/v1/Deployment/n/a", ""},
		"no apiVersion":           {`{"kind":"ConfigMap","metadata":{"name":"a"}}`, "", "no apiVersion or no kind"},
		"no kind":                 {`{"apiVersion":"v1","metadata":{"name":"a"}}`, "", "no apiVersion or no kind"},
		"apiVersion is no string": {`{"apiVersion":1,"kind":"ConfigMap","metadata":{"name":"a"}}`, "", "no apiVersion or no kind"},
		"kind is no string":       {`{"apiVersion":"v1","kind":["ConfigMap"],"metadata":{"name":"a"}}`, "", "no apiVersion or no kind"},
		"apiVersion with two /":   {`{"apiVersion":"a/b/c","kind":"ConfigMap","metadata":{"name":"a"}}`, "", "its apiVersion is not <version> or <group>/<version>"},
		"no metadata":             {`{"apiVersion":"v1","kind":"ConfigMap"}`, "", "the ConfigMap has no metadata.name"},
		"metadata is null":        {`{"apiVersion":"v1","kind":"ConfigMap","metadata":null}`, "", "the ConfigMap has no metadata.name"},
		"metadata is a list":      {`{"apiVersion":"v1","kind":"ConfigMap","metadata":["name"]}`, "", "the ConfigMap has no metadata.name"},
		"no name":                 {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a"}}`, "", "the ConfigMap has no metadata.name"},
		"name is a number":        {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":1}}`, "", "the ConfigMap has no metadata.name"},
		"a list in a List":        {`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap"}]}]}`, "", "the ConfigMap has no metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			documents, problems := decodeText(test.text)
			if len(documents) != 1 || len(problems) > 0 {
				t.Fatalf("decode returned %d objects and %v", len(documents), textsOf(problems))
			}
			ref, err := RefOf(documents[0].Object)
			switch {
			case test.problem == "" && err != nil:
				t.Errorf("error: %v", err)
			case test.problem == "" && ref.String() != test.want:
				t.Errorf("got %s, want %s", ref, test.want)
			case test.problem != "" && err == nil:
				t.Errorf("got %s, want an error with %q", ref, test.problem)
			case test.problem != "":
				expectContains(t, err.Error(), test.problem)
			}
		})
	}
}

const widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: SCOPE
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v0, served: false, storage: false}
`

const widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: x, namespace: shop}\n"

func TestRenderTakesScopesFromDefinitionsOfTheSameSet(t *testing.T) {
	unserved := strings.Replace(widget, "example.com/v1", "example.com/v0", 1)
	for name, test := range map[string]struct {
		text  string
		known Scope
		want  string
	}{
		"cluster-scoped":                {strings.Replace(widgetDefinition, "SCOPE", "Cluster", 1) + "---\n" + widget, ScopeUnknown, ""},
		"namespaced":                    {strings.Replace(widgetDefinition, "SCOPE", "Namespaced", 1) + "---\n" + widget, ScopeUnknown, "shop"},
		"defined after its use":         {widget + "---\n" + strings.Replace(widgetDefinition, "SCOPE", "Cluster", 1), ScopeUnknown, ""},
		"the target cluster knows best": {strings.Replace(widgetDefinition, "SCOPE", "Cluster", 1) + "---\n" + widget, ScopeNamespaced, "shop"},
		"a version that is not served":  {strings.Replace(widgetDefinition, "SCOPE", "Cluster", 1) + "---\n" + unserved, ScopeUnknown, "shop"},
		"no valid scope":                {widgetDefinition + "---\n" + widget, ScopeUnknown, "shop"},
		"no definition":                 {widget, ScopeUnknown, "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			documents, problems := decodeText(test.text)
			if len(problems) > 0 {
				t.Fatalf("decode: %v", textsOf(problems))
			}
			scopes := testScopes()
			scopes[widgetKind] = test.known
			before := maps.Clone(scopes)
			result := Render(documents, scopes, nil, testMarks(nil))
			if len(result.Errors) > 0 {
				t.Fatalf("problems: %v", textsOf(result.Errors))
			}
			if !maps.Equal(scopes, before) {
				t.Error("render changed the caller's scopes")
			}
			for _, manifest := range result.Manifests {
				if manifest.Kind != "Widget" {
					continue
				}
				body, _ := fieldOf(t, manifest, "metadata", "namespace").(string)
				if manifest.Namespace != test.want || body != test.want {
					t.Errorf("namespace %q, %q in the body, want %q", manifest.Namespace, body, test.want)
				}
			}
		})
	}
}

func TestRenderNotesWhatDefinitionsDefine(t *testing.T) {
	want := []schema.GroupVersionKind{widgetKind}
	manifest := renderOne(t, strings.Replace(widgetDefinition, "SCOPE", "Cluster", 1), testMarks(nil))
	if !slices.Equal(manifest.Defines, want) {
		t.Errorf("the definition defines %v, want %v", manifest.Defines, want)
	}
	for name, text := range map[string]string{
		"of another group": strings.Replace(widgetDefinition, "apiextensions.k8s.io", "example.com", 1),
		"without a spec":   "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n",
		"with bad versions": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n" +
			"spec: {group: 1, names: [], versions: [1, {name: 2}, {served: 'true'}, null]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if defines := renderOne(t, text, testMarks(nil)).Defines; len(defines) > 0 {
				t.Errorf("the definition defines %v, want nothing", defines)
			}
		})
	}
}

func TestRenderSortsAndDoesNotRepeat(t *testing.T) {
	in := func(namespace, name string) string { return configMap(name) + "  namespace: " + namespace + "\n---\n" }
	for name, test := range map[string]struct {
		text     string
		want     []string
		problems []string
	}{
		"sorted": {
			in("shop", "b") + in("shop", "a") + in("bank", "c"),
			[]string{"v1/ConfigMap/bank/c", "v1/ConfigMap/shop/a", "v1/ConfigMap/shop/b"}, nil,
		},
		"the same twice":                  {in("shop", "a") + in("shop", "a"), []string{"v1/ConfigMap/shop/a"}, nil},
		"the same, fields in other order": {in("shop", "a") + "metadata: {namespace: shop, name: a}\nkind: ConfigMap\napiVersion: v1\n", []string{"v1/ConfigMap/shop/a"}, nil},
		"the same by the default":         {configMap("a") + "---\n" + in("default", "a"), []string{"v1/ConfigMap/default/a"}, nil},
		"different content": {
			in("shop", "b") + in("shop", "a") + configMap("a") + "  namespace: shop\ndata: {x: y}\n",
			[]string{"v1/ConfigMap/shop/b"},
			[]string{"v1/ConfigMap/shop/a occurs twice with different content, at index 1 in 'a.yaml' in secret " +
				"'garden/manifests' and at index 2 in 'a.yaml' in secret 'garden/manifests': neither is applied, remove one"},
		},
		"twice alike, then different": {
			in("shop", "a") + in("shop", "a") + configMap("a") + "  namespace: shop\ndata: {x: y}\n", nil,
			[]string{"v1/ConfigMap/shop/a occurs twice"},
		},
		"in two versions": {
			"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n---\n" +
				"apiVersion: example.com/v2\nkind: Widget\nmetadata: {name: a}\n", nil,
			[]string{"Widget/default/a occurs twice"},
		},
		"a bad one among good ones": {
			in("shop", "a") + "kind: ConfigMap\n---\n" + in("shop", "b"),
			[]string{"v1/ConfigMap/shop/a", "v1/ConfigMap/shop/b"},
			[]string{"could not decode resource at index 1 in 'a.yaml' in secret 'garden/manifests': it has no apiVersion"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			documents, problems := decodeText(test.text)
			if len(problems) > 0 {
				t.Fatalf("decode: %v", textsOf(problems))
			}
			result := Render(documents, testScopes(), nil, testMarks(nil))
			refs := make([]string, 0, len(result.Manifests))
			for _, manifest := range result.Manifests {
				refs = append(refs, manifest.String())
			}
			if !slices.Equal(refs, test.want) {
				t.Errorf("got %v, want %v", refs, test.want)
			}
			texts := textsOf(result.Errors)
			if len(texts) != len(test.problems) {
				t.Fatalf("got the problems %v, want %v", texts, test.problems)
			}
			for i, text := range texts {
				expectContains(t, text, test.problems[i])
			}
		})
	}
}

func TestManifestsAreEqualIfAndOnlyIfTheirBodiesAre(t *testing.T) {
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: '2', a: '1'}\n"
	first := renderOne(t, text, testMarks(nil))
	again := renderOne(t, "data: {a: '1', b: '2'}\nmetadata: {name: a}\nkind: ConfigMap\napiVersion: v1\n", testMarks(nil))
	if string(first.Body) != string(again.Body) || first.Digest != again.Digest {
		t.Errorf("equal objects differ:\n%s %s\n%s %s", first.Digest, first.Body, again.Digest, again.Body)
	}
	if first.Digest != object.Digest(first.Body) {
		t.Errorf("%s is not the digest of the body", first.Digest)
	}
	if !json.Valid(first.Body) {
		t.Errorf("the body is not JSON: %s", first.Body)
	}
	for name, other := range map[string]object.Manifest{
		"data":           renderOne(t, strings.Replace(text, "'1'", "'3'", 1), testMarks(nil)),
		"name":           renderOne(t, strings.Replace(text, "name: a", "name: b", 1), testMarks(nil)),
		"version":        renderOne(t, strings.Replace(text, "v1", "v2", 1), testMarks(nil)),
		"injected label": renderOne(t, text, testMarks(map[string]string{"x": "y"})),
		"managed-by":     renderOne(t, text, RenderOptions{Origin: "garden/shop", ManagedBy: "other"}),
		"origin":         renderOne(t, text, RenderOptions{Origin: "garden/bank", ManagedBy: "gardener"}),
	} {
		if other.Digest == first.Digest {
			t.Errorf("the digest does not depend on the %s", name)
		}
	}
}
