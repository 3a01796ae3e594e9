package main

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/examples"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func TestPack(t *testing.T) {
	manifest := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: shop}}")}
	}
	files := fstest.MapFS{"shop/b.yaml": manifest("b"), "shop/a.yaml": manifest("a"), "shop/notes.md": {Data: []byte("no manifest")}}
	if p := mustPack(t, files, delivery{name: "shop", folder: "shop"}); p.Objects != 2 || len(p.Secrets[0].Data["data.yaml"]) == 0 {
		t.Errorf("%s, want 2 objects as plain YAML", p.Describe())
	}
	if p := mustPack(t, files, delivery{name: "shop", folder: "shop", compress: true}); len(p.Secrets[0].Data["data.yaml.br"]) == 0 {
		t.Errorf("the parcel is not compressed: %s", p.Describe())
	}
	if _, err := (delivery{folder: "nowhere"}).pack(files); err == nil || !strings.Contains(err.Error(), "no manifests in nowhere") {
		t.Errorf("error %v for a folder that does not exist", err)
	}
	files["shop/c.yaml"] = &fstest.MapFile{Data: []byte("{")}
	if _, err := (delivery{name: "shop", folder: "shop"}).pack(files); err == nil || !strings.Contains(err.Error(), "shop/c.yaml") {
		t.Errorf("error %v for an invalid manifest", err)
	}
}

// TestExamples checks the properties of the examples that the tour relies on.
func TestExamples(t *testing.T) {
	g := &guide{files: examples.Files}
	for _, d := range webshop {
		mustPack(t, examples.Files, d)
	}
	for _, name := range []string{"webshop/base/configmap.yaml", "webshop/app/deployment.yaml", "webshop/app/autoscaler.yaml"} {
		object := map[string]any{}
		if err := g.readExample(name, &object); err != nil {
			t.Error(err)
		}
	}
}

func mustPack(t *testing.T, files fs.FS, d delivery) *parcel {
	t.Helper()
	p, err := d.pack(files)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAppliedCondition(t *testing.T) {
	mr := func(status resourcesv1alpha1.ConditionStatus, observed int64) *resourcesv1alpha1.ManagedResource {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		mr.Status.ObservedGeneration = observed
		mr.Status.Conditions = []resourcesv1alpha1.Condition{
			{Type: resourcesv1alpha1.ResourcesHealthy, Status: resourcesv1alpha1.ConditionTrue},
			{Type: resourcesv1alpha1.ResourcesApplied, Status: status},
		}
		return mr
	}
	for name, test := range map[string]struct {
		mr   *resourcesv1alpha1.ManagedResource
		want resourcesv1alpha1.ConditionStatus
	}{
		"without conditions":    {&resourcesv1alpha1.ManagedResource{}, resourcesv1alpha1.ConditionUnknown},
		"applied":               {mr(resourcesv1alpha1.ConditionTrue, 2), resourcesv1alpha1.ConditionTrue},
		"applied before":        {mr(resourcesv1alpha1.ConditionTrue, 1), resourcesv1alpha1.ConditionUnknown},
		"failed, not concluded": {mr(resourcesv1alpha1.ConditionFalse, 1), resourcesv1alpha1.ConditionFalse},
	} {
		if got := appliedCondition(test.mr).Status; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestManagedResourceRows(t *testing.T) {
	now := time.Now()
	mr := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden", Name: "shop", CreationTimestamp: metav1.NewTime(now.Add(-90 * time.Second)),
	}}
	seed := *mr.DeepCopy()
	seed.Spec.Class = ptr.To("seed")
	seed.Status.Resources = make([]resourcesv1alpha1.ObjectReference, 3)
	seed.Status.Conditions = []resourcesv1alpha1.Condition{
		{Type: resourcesv1alpha1.ResourcesApplied, Status: resourcesv1alpha1.ConditionFalse, Message: "two\nlines"},
	}
	var got []string
	for _, row := range managedResourceRows([]resourcesv1alpha1.ManagedResource{mr, seed}, now) {
		got = append(got, strings.Join(row, "|"))
	}
	want := []string{
		"garden/shop|(default)|Unknown|0|90s|The resource-manager has not reconciled it yet.",
		"garden/shop|seed|False|3|90s|two lines",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStateOf(t *testing.T) {
	for _, test := range []struct{ object, want string }{
		{"kind: ConfigMap\ndata: {a: b}", "1 key"},
		{"kind: Secret", "0 keys"},
		{"kind: Deployment\nspec: {replicas: 3}\nstatus: {readyReplicas: 2}", "2/3 ready"},
		{"kind: ReplicaSet\nspec: {replicas: 3}", "0/3 ready"},
		{"kind: Pod\nstatus: {phase: Pending}", "Pending"},
		{"kind: Pod\nstatus: {phase: Running}\nspec: {nodeName: node-1}", "Running on node-1"},
		{"kind: Namespace\nstatus: {phase: Active}", "Active"},
		{"kind: Service\nspec: {clusterIP: 10.0.0.1}", "10.0.0.1"},
		{"kind: EndpointSlice\nendpoints: [{}, {}]", "2 endpoints"},
		{"kind: EndpointSlice\nendpoints: null", "0 endpoints"},
		{"kind: HorizontalPodAutoscaler\nspec: {minReplicas: 2, maxReplicas: 5}\nstatus: {desiredReplicas: 4}", "wants 4 (of 2 to 5)"},
		{"kind: CustomResourceDefinition\nstatus: {conditions: [{type: Established, status: 'True'}]}", "established"},
		{"kind: CustomResourceDefinition", "not established"},
		{"kind: Coupon", "present"},
		{"kind: Pod\nmetadata: {deletionTimestamp: '2030-01-01T00:00:00Z'}", "being deleted"},
	} {
		if got := stateOf(parse(t, test.object).Object); got != test.want {
			t.Errorf("%q: %q, want %q", test.object, got, test.want)
		}
	}
}

func TestOwners(t *testing.T) {
	o := owners{}
	o.add([]unstructured.Unstructured{
		parse(t, "kind: Pod\nmetadata: {name: b-1, uid: pod, ownerReferences: [{uid: set-b}]}"),
		parse(t, "kind: ReplicaSet\nmetadata: {name: b, uid: set-b, ownerReferences: [{uid: deployment}]}"),
		parse(t, "kind: ReplicaSet\nmetadata: {name: a, uid: set-a, ownerReferences: [{uid: deployment}]}"),
		parse(t, "kind: Pod\nmetadata: {name: other, uid: other}"),
		parse(t, "kind: Pod\nmetadata: {name: itself, uid: loop, ownerReferences: [{uid: loop}]}"),
	})
	got := o.below(types.UID("deployment"), maxDepth)
	if len(got) != 2 || got[0].name != "ReplicaSet a" || got[1].name != "ReplicaSet b" {
		t.Fatalf("got %+v, want the ReplicaSets a and b", got)
	}
	if len(got[0].children) != 0 || len(got[1].children) != 1 || got[1].children[0].name != "Pod b-1" {
		t.Errorf("got %+v, want the Pod b-1 only below the ReplicaSet b", got)
	}
	depth := 0
	for loop := o.below(types.UID("loop"), maxDepth); len(loop) > 0; loop = loop[0].children {
		depth++
	}
	if depth != maxDepth {
		t.Errorf("an object that owns itself is shown %d times, want %d", depth, maxDepth)
	}
}

// parse reads an object in the form that the API server returns, with whole numbers as int64.
func parse(t *testing.T, manifest string) unstructured.Unstructured {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte("apiVersion: v1\n" + manifest))
	if err != nil {
		t.Fatal(err)
	}
	object := unstructured.Unstructured{}
	if err := object.UnmarshalJSON(asJSON); err != nil {
		t.Fatal(err)
	}
	return object
}
