package manifest

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const (
	managedByKey   = resourcesv1alpha1.LabelManagedBy
	originKey      = resourcesv1alpha1.AnnotationOrigin
	descriptionKey = resourcesv1alpha1.AnnotationDescription
)

func TestFinishMarksObjects(t *testing.T) {
	injected := map[string]string{"team": "blue", managedByKey: "someone"}
	manifest := renderOne(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels: {app: x, team: red, resources.gardener.cloud/managed-by: me}
  annotations: {note: hi, resources.gardener.cloud/origin: forged/origin}
`, testMarks(injected))

	wantLabels := map[string]any{"app": "x", "team": "blue", managedByKey: "gardener"}
	if got := fieldOf(t, manifest, "metadata", "labels"); !reflect.DeepEqual(got, wantLabels) {
		t.Errorf("labels %v, want %v", got, wantLabels)
	}
	wantAnnotations := map[string]any{"note": "hi", originKey: "garden/shop", descriptionKey: resourcesv1alpha1.Description}
	if got := fieldOf(t, manifest, "metadata", "annotations"); !reflect.DeepEqual(got, wantAnnotations) {
		t.Errorf("annotations %v, want %v", got, wantAnnotations)
	}
	// The inventory contains metadata that other components compare with. It has all labels, but only the annotations of the
	// author.
	if want := map[string]string{"app": "x", "team": "blue", managedByKey: "gardener"}; !maps.Equal(manifest.Labels, want) {
		t.Errorf("recorded labels %v, want %v", manifest.Labels, want)
	}
	if want := map[string]string{"note": "hi", originKey: "forged/origin"}; !maps.Equal(manifest.Annotations, want) {
		t.Errorf("recorded annotations %v, want only those of the author %v", manifest.Annotations, want)
	}
	if injected[managedByKey] != "someone" || len(injected) != 2 {
		t.Errorf("the injected labels of the ManagedResource were changed to %v", injected)
	}
}

func TestFinishMarksObjectsWithoutLabels(t *testing.T) {
	for name, metadata := range map[string]string{
		"absent": "{name: a}", "null": "{name: a, labels: null, annotations: null}", "empty": "{name: a, labels: {}, annotations: {}}",
	} {
		t.Run(name, func(t *testing.T) {
			manifest := renderOne(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: "+metadata+"\n", testMarks(nil))
			if got := fieldOf(t, manifest, "metadata", "labels"); !reflect.DeepEqual(got, map[string]any{managedByKey: "gardener"}) {
				t.Errorf("labels %v, want only the managed-by label", got)
			}
			if got := fieldOf(t, manifest, "metadata", "annotations", originKey); got != "garden/shop" {
				t.Errorf("origin %v, want garden/shop", got)
			}
		})
	}
}

func TestFinishRejectsBadMetadata(t *testing.T) {
	for name, test := range map[string]struct{ metadata, want string }{
		"labels are a list":          {"{name: a, labels: [x]}", "its metadata.labels is not a map"},
		"labels are a string":        {"{name: a, labels: x}", "its metadata.labels is not a map"},
		"a label is a list":          {"{name: a, labels: {key: []}}", `metadata.labels["key"] is not a string: quote it`},
		"many labels are wrong":      {"{name: a, labels: {f: {}, c: [], b: {}, e: [], a: 'yes', d: {}}}", `metadata.labels["b"] is not a string: quote it`},
		"annotations are a list":     {"{name: a, annotations: [x]}", "its metadata.annotations is not a map"},
		"an annotation is an object": {"{name: a, annotations: {key: {}}}", `metadata.annotations["key"] is not a string: quote it`},
	} {
		t.Run(name, func(t *testing.T) {
			documents, _ := decodeText("apiVersion: v1\nkind: ConfigMap\nmetadata: " + test.metadata + "\n")
			result := Render(documents, testScopes(), nil, testMarks(nil))
			if len(result.Manifests) != 0 || len(result.Errors) != 1 {
				t.Fatalf("got %d manifests and %v, want one problem", len(result.Manifests), textsOf(result.Errors))
			}
			expectContains(t, result.Errors[0].Error(), "at index 0 in 'a.yaml'", test.want)
		})
	}
}

func TestFinishReadsNullAsEmpty(t *testing.T) {
	manifest := renderOne(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {key: }, annotations: {key: null}}\n", testMarks(nil))
	for _, field := range []string{"labels", "annotations"} {
		if got := fieldOf(t, manifest, "metadata", field, "key"); got != "" {
			t.Errorf("%s: got %v, want the empty string", field, got)
		}
	}
}

func TestFinishRemovesWhatOnlyTheServerSets(t *testing.T) {
	manifest := renderOne(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  creationTimestamp: null
  deletionGracePeriodSeconds: 1
  deletionTimestamp: "2020-01-01T00:00:00Z"
  generation: 3
  managedFields: [{manager: kubectl}]
  resourceVersion: "1"
  selfLink: /x
  uid: u
  finalizers: [example.com/f]
  ownerReferences: [{name: o}]
`, testMarks(nil))
	metadata, _ := fieldOf(t, manifest, "metadata").(map[string]any)
	for _, key := range []string{"name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"} {
		if _, found := metadata[key]; !found {
			t.Errorf("metadata.%s is missing", key)
		}
		delete(metadata, key)
	}
	if len(metadata) > 0 {
		t.Errorf("metadata still has %v", metadata)
	}
}

func TestFinishMovesStringDataIntoData(t *testing.T) {
	for name, test := range map[string]struct {
		kind, fields string
		want         map[string]any
		stays        bool
	}{
		"alone":                   {"v1/Secret", "stringData: {a: hello}", map[string]any{"a": "aGVsbG8="}, false},
		"beside data":             {"v1/Secret", "data: {b: eA==}\nstringData: {a: hello}", map[string]any{"a": "aGVsbG8=", "b": "eA=="}, false},
		"it wins":                 {"v1/Secret", "data: {a: eA==}\nstringData: {a: hello}", map[string]any{"a": "aGVsbG8="}, false},
		"an empty value":          {"v1/Secret", "stringData: {a: ''}", map[string]any{"a": ""}, false},
		"beside null":             {"v1/Secret", "data: null\nstringData: {a: hello}", map[string]any{"a": "aGVsbG8="}, false},
		"of a ConfigMap":          {"v1/ConfigMap", "data: {b: x}\nstringData: {a: hello}", map[string]any{"b": "x"}, true},
		"of another group's kind": {"example.com/v1/Secret", "data: {b: x}\nstringData: {a: hello}", map[string]any{"b": "x"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			gvk := schema.FromAPIVersionAndKind(splitKind(test.kind))
			manifest := renderOne(t, "apiVersion: "+gvk.GroupVersion().String()+"\nkind: "+gvk.Kind+
				"\nmetadata: {name: a}\n"+test.fields+"\n", testMarks(nil))
			if got := fieldOf(t, manifest, "data"); !reflect.DeepEqual(got, test.want) {
				t.Errorf("data %v, want %v", got, test.want)
			}
			if stays := fieldOf(t, manifest, "stringData") != nil; stays != test.stays {
				t.Errorf("stringData exists: %v, want %v", stays, test.stays)
			}
		})
	}
}

// splitKind splits "<apiVersion>/<kind>".
func splitKind(text string) (apiVersion, kind string) {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == '/' {
			return text[:i], text[i+1:]
		}
	}
	return "", text
}

func TestFinishLabelsTemplates(t *testing.T) {
	wanted := map[string]any{"team": "blue", managedByKey: "gardener"}
	with := func(label string) map[string]any {
		return map[string]any{"team": "blue", managedByKey: "gardener", label: "x"}
	}
	type labelled struct {
		path []any
		want any
	}
	for name, test := range map[string]struct {
		kind, spec string
		labels     []labelled
	}{
		"Deployment": {
			"apps/v1/Deployment", "{template: {metadata: {labels: {app: x, team: red}}, spec: {}}}",
			[]labelled{{[]any{"template", "metadata", "labels"}, with("app")}},
		},
		"a template without metadata": {
			"apps/v1/Deployment", "{template: {spec: {}}}",
			[]labelled{{[]any{"template", "metadata", "labels"}, wanted}},
		},
		"a template with metadata alone": {
			"example.com/v1/Widget", "{template: {metadata: {}}}",
			[]labelled{{[]any{"template", "metadata", "labels"}, wanted}},
		},
		"Job": {
			"batch/v1/Job", "{template: {spec: {}}}",
			[]labelled{{[]any{"template", "metadata", "labels"}, wanted}},
		},
		"the selector is left alone": {
			"apps/v1/Deployment", "{selector: {matchLabels: {app: x}}, template: {spec: {}}}",
			[]labelled{{[]any{"selector", "matchLabels"}, map[string]any{"app": "x"}}},
		},
		"CronJob": {
			"batch/v1/CronJob", "{jobTemplate: {spec: {template: {metadata: {labels: {app: x}}, spec: {}}}}}",
			[]labelled{
				{[]any{"jobTemplate", "spec", "template", "metadata", "labels"}, with("app")},
				{[]any{"template"}, nil},
			},
		},
		"CronJob without a template": {"batch/v1/CronJob", "{jobTemplate: {}}", []labelled{{[]any{"jobTemplate"}, map[string]any{}}}},
		"CronJob with nonsense":      {"batch/v1/CronJob", "{jobTemplate: 7}", []labelled{{[]any{"jobTemplate"}, 7.0}}},
		"another group's CronJob": {
			"example.com/v1/CronJob", "{jobTemplate: {spec: {template: {spec: {}}}}}",
			[]labelled{{[]any{"jobTemplate", "spec", "template", "metadata"}, nil}},
		},
		"StatefulSet": {
			"apps/v1/StatefulSet", "{template: {spec: {}}, volumeClaimTemplates: [{metadata: {name: a, labels: {app: x}}}, {spec: {}}, 7]}",
			[]labelled{
				{[]any{"template", "metadata", "labels"}, wanted},
				{[]any{"volumeClaimTemplates", 0, "metadata", "labels"}, with("app")},
				{[]any{"volumeClaimTemplates", 0, "metadata", "name"}, "a"},
				{[]any{"volumeClaimTemplates", 1, "metadata", "labels"}, wanted},
				{[]any{"volumeClaimTemplates", 2}, 7.0},
			},
		},
		"a template that is a string":   {"example.com/v1/Widget", "{template: hello}", []labelled{{[]any{"template"}, "hello"}}},
		"a template of something else":  {"example.com/v1/Widget", "{template: {a: b}}", []labelled{{[]any{"template"}, map[string]any{"a": "b"}}}},
		"a template with scalar fields": {"example.com/v1/Widget", "{template: {spec: b}}", []labelled{{[]any{"template"}, map[string]any{"spec": "b"}}}},
		"claims that are a map":         {"example.com/v1/Widget", "{volumeClaimTemplates: {a: b}}", []labelled{{[]any{"volumeClaimTemplates"}, map[string]any{"a": "b"}}}},
		"a spec that is a list":         {"example.com/v1/Widget", "[{template: {spec: {}}}]", []labelled{{[]any{0, "template", "metadata"}, nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			gvk := schema.FromAPIVersionAndKind(splitKind(test.kind))
			manifest := renderOne(t, "apiVersion: "+gvk.GroupVersion().String()+"\nkind: "+gvk.Kind+
				"\nmetadata: {name: a}\nspec: "+test.spec+"\n", testMarks(map[string]string{"team": "blue"}))
			for _, labelled := range test.labels {
				path := append([]any{"spec"}, labelled.path...)
				if got := fieldOf(t, manifest, path...); !reflect.DeepEqual(got, labelled.want) {
					t.Errorf("%v is %#v, want %#v", path, got, labelled.want)
				}
			}
		})
	}
}

// TestRulesAboutLabelsAndAnnotations checks that they are omitted in requests for existing objects, like other ignored fields.
func TestRulesAboutLabelsAndAnnotations(t *testing.T) {
	rules, err := ParseIgnoreRules(&resourcesv1alpha1.DriftDetection{Ignore: []resourcesv1alpha1.IgnoreRule{
		{Paths: []string{"/metadata/annotations/theirs", "/metadata/labels/theirs"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	marks := testMarks(nil)
	marks.Ignored = rules
	manifest := renderOne(t, configMap("a")+"  annotations: {theirs: x, ours: z}\n  labels: {theirs: x, ours: z}\n", marks)
	if sent := string(manifest.Body); strings.Contains(sent, "theirs") || strings.Count(sent, `"ours":"z"`) != 2 {
		t.Errorf("an existing object gets %s", sent)
	}
	if created := string(manifest.Initial); strings.Count(created, `"theirs":"x"`) != 2 {
		t.Errorf("a new object gets %s", created)
	}
}
