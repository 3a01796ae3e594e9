package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// get reads a path of the API server.
func (f *fixture) get(path, accept string) []byte {
	f.Helper()
	clients, err := kubernetes.NewForConfig(shared.Get(f).Config())
	must(f, err)
	content, err := clients.RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).DoRaw(f.ctx)
	must(f, err)
	return content
}

// TestContractNamesOfTheAPI checks discovery and the stored versions of ManagedResources.
func TestContractNamesOfTheAPI(t *testing.T) {
	f := newFixture(t)
	clients, err := kubernetes.NewForConfig(shared.Get(t).Config())
	must(t, err)
	list, err := clients.Discovery().ServerResourcesForGroupVersion("resources.gardener.cloud/v1alpha1")
	must(t, err)
	byName := map[string]metav1.APIResource{}
	for _, resource := range list.APIResources {
		byName[resource.Name] = resource
	}
	main, status := byName["managedresources"], byName["managedresources/status"]
	if main.Kind != "ManagedResource" || main.SingularName != "managedresource" || !main.Namespaced || !slices.Equal(main.ShortNames, []string{"mr"}) {
		t.Errorf("the served version is %+v", main)
	}
	if status.Kind != "ManagedResource" || len(byName) != 2 {
		t.Errorf("the served resources are %v", byName)
	}
	definition := &unstructured.Unstructured{}
	must(t, json.Unmarshal(f.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/managedresources.resources.gardener.cloud", "application/json"),
		&definition.Object))
	if got := fmt.Sprint(at(definition, "status", "storedVersions")); got != "[v1alpha1]" {
		t.Errorf("the stored versions are %s", got)
	}
	all := &unstructured.Unstructured{}
	must(t, json.Unmarshal(f.get("/apis/resources.gardener.cloud/v1alpha1/managedresources", "application/json"), &all.Object))
	if all.GetKind() != "ManagedResourceList" {
		t.Errorf("the kind of the list is %s", all.GetKind())
	}
}

// TestContractColumns reads the table that kubectl shows.
func TestContractColumns(t *testing.T) {
	f := newFixture(t)
	mr := f.managedResource("set")
	f.change(mr, func() { class := "seed"; mr.Spec.Class = &class })
	for i, conditionType := range []resourcesv1alpha1.ConditionType{"ResourcesProgressing", "ResourcesApplied", "ResourcesHealthy"} {
		mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{
			Type: conditionType, Status: []resourcesv1alpha1.ConditionStatus{"False", "Progressing", "Unknown"}[i],
			LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		})
	}
	must(t, f.client.Status().Update(f.ctx, mr))
	table := &metav1.Table{}
	must(t, json.Unmarshal(f.get("/apis/resources.gardener.cloud/v1alpha1/namespaces/"+f.namespace+"/managedresources",
		"application/json;as=Table;v=v1;g=meta.k8s.io"), table))
	var columns []string
	for i, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			columns = append(columns, fmt.Sprintf("%s %s=%v", column.Name, column.Type, table.Rows[0].Cells[i]))
		}
	}
	last := len(columns) - 1
	columns[last], _, _ = strings.Cut(columns[last], "=") // the age
	want := []string{"Name string=set", "Class string=seed", "Applied string=Progressing", "Healthy string=Unknown", "Progressing string=False", "Age date"}
	if !slices.Equal(columns, want) {
		t.Errorf("the columns are %q, want %q", columns, want)
	}
}

// create creates a ManagedResource with the given spec, in YAML.
func (f *fixture) create(spec string) (*unstructured.Unstructured, error) {
	f.Helper()
	object := f.parse("apiVersion: resources.gardener.cloud/v1alpha1\nkind: ManagedResource\nmetadata: {generateName: x-, namespace: NS}\nspec: " + spec + "\n")
	return object, f.client.Create(f.ctx, object)
}

// TestContractSpecIsTakenAsItIs: the API server validates only types and defaults only the name of a reference.
func TestContractSpecIsTakenAsItIs(t *testing.T) {
	f := newFixture(t)
	for spec, stored := range map[string]string{ // empty: stored unchanged
		"{secretRefs: []}": "",
		"{secretRefs: [{name: a}, {name: b}, {name: a}]}":                                        "",
		"{secretRefs: [{}]}":                                                                     "{secretRefs: [{name: \"\"}]}",
		"{secretRefs: [], class: \"\"}":                                                          "",
		"{secretRefs: [], class: Not a label!}":                                                  "",
		"{secretRefs: [], class: null}":                                                          "{secretRefs: []}",
		"{secretRefs: [], injectLabels: {not a key!: not a value!}}":                             "",
		"{secretRefs: [], injectLabels: {}, equivalences: []}":                                   "",
		"{secretRefs: [], equivalences: [[], [{group: \"\", kind: A}, {group: \"\", kind: A}]]}": "",
		"{secretRefs: [], forceOverwriteLabels: false, forceOverwriteAnnotations: true}":         "",
		"{secretRefs: [], keepObjects: true, deletePersistentVolumeClaims: false}":               "",
	} {
		if stored == "" {
			stored = spec
		}
		want := f.parse("spec: " + stored)
		object, err := f.create(spec)
		if err != nil {
			t.Errorf("%s is rejected: %v", spec, err)
		} else if got := fmt.Sprint(object.Object["spec"]); got != fmt.Sprint(want.Object["spec"]) {
			t.Errorf("%s is stored as %s", spec, got)
		}
	}
}

func TestContractWrongSpecIsRefused(t *testing.T) {
	f := newFixture(t)
	for spec, says := range map[string]string{
		"{}":                                                       "spec.secretRefs: Required",
		"{secretRefs: null}":                                       "spec.secretRefs",
		"{secretRefs: x}":                                          "spec.secretRefs",
		"{secretRefs: [{name: 1}]}":                                "spec.secretRefs[0].name",
		"{secretRefs: [], class: 1}":                               "spec.class",
		"{secretRefs: [], keepObjects: x}":                         "spec.keepObjects",
		"{secretRefs: [], injectLabels: [a]}":                      "spec.injectLabels",
		"{secretRefs: [], injectLabels: {a: 1}}":                   "spec.injectLabels.a",
		"{secretRefs: [], forceOverwriteLabels: x}":                "spec.forceOverwriteLabels",
		"{secretRefs: [], forceOverwriteAnnotations: x}":           "spec.forceOverwriteAnnotations",
		"{secretRefs: [], deletePersistentVolumeClaims: x}":        "spec.deletePersistentVolumeClaims",
		"{secretRefs: [], equivalences: [[{kind: A}]]}":            "spec.equivalences[0][0].group: Required",
		"{secretRefs: [], equivalences: [[{group: a}]]}":           "spec.equivalences[0][0].kind: Required",
		"{secretRefs: [], equivalences: [{group: a, kind: b}]}":    "spec.equivalences[0]",
		"{secretRefs: [{name: " + strings.Repeat("x", 254) + "}]}": "spec.secretRefs[0].name: Too long", // no Secret has such a name
	} {
		if _, err := f.create(spec); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", spec, err, says)
		}
	}
}

// TestContractStatusFields: a status that gardener-resource-manager and others write is stored unchanged.
func TestContractStatusFields(t *testing.T) {
	f := newFixture(t)
	const condition = `{"type":"ResourcesHealthy","status":"Unknown","reason":"R","message":"M","lastTransitionTime":"2026-01-02T03:04:05Z","lastUpdateTime":"2026-01-02T03:04:06Z","codes":["A","B"]}`
	update := func(status string) (*unstructured.Unstructured, error) {
		object, err := f.create("{secretRefs: []}")
		must(t, err)
		return object, f.client.Status().Patch(f.ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"status":`+status+`}`)))
	}
	full := `{"observedGeneration":7,"secretsDataChecksum":"abc","conditions":[` + condition + `],"resources":[{"apiVersion":"v1","kind":"K",` +
		`"namespace":"n","name":"x","uid":"u","resourceVersion":"1","fieldPath":"p","labels":{"a":"b"},"annotations":{"c":"d"}}]}`
	var want any
	must(t, json.Unmarshal([]byte(full), &want))
	object, err := update(full)
	must(t, err)
	if got := fmt.Sprint(object.Object["status"]); got != fmt.Sprint(want) {
		t.Errorf("the stored status is %s, want %v", got, want)
	}
	for _, status := range []string{"True", "False", "Unknown", "Progressing"} {
		if _, err := update(`{"conditions":[` + strings.Replace(condition, "Unknown", status, 1) + `]}`); err != nil {
			t.Errorf("status %s: %v", status, err)
		}
	}
	for _, field := range []string{"type", "status", "reason", "message", "lastTransitionTime", "lastUpdateTime"} {
		if _, err := update(`{"conditions":[` + strings.Replace(condition, `"`+field+`"`, `"x`+field+`"`, 1) + `]}`); err == nil {
			t.Errorf("a condition without %s is accepted", field)
		}
	}
	if _, err := update(`{"conditions":[` + strings.Replace(condition, `,"codes":["A","B"]`, "", 1) + `]}`); err != nil {
		t.Errorf("without codes: %v", err)
	}
}

// TestContractSecretsOfTheOwnNamespace: a reference without a name, and a Secret of another namespace, cannot be
// read. No reference and two equal references are valid.
func TestContractSecretsOfTheOwnNamespace(t *testing.T) {
	f, elsewhere := newFixture(t), newFixture(t)
	elsewhere.secret("there", "objects.yaml", f.configMap("never", "1"))
	for _, name := range []string{"", "there"} {
		mr := f.managedResource("set-"+name+"x", name)
		mr, _, err := f.reconcile(mr.Name)
		if got := applied(mr); got.Status != "False" || got.Reason != "CannotReadSecret" || !strings.Contains(got.Message, f.namespace+"/"+name) {
			t.Errorf("%q: ResourcesApplied is %+v, %v", name, got, err)
		}
	}
	f.wantNoConfigMap("never")
	f.secret("here", "objects.yaml", f.configMap("one", "1"))
	f.managedResource("none")
	f.managedResource("twice", "here", "here")
	for name, count := range map[string]int{"none": 0, "twice": 1} {
		if mr := f.reconcileOK(name); len(mr.Status.Resources) != count {
			t.Errorf("%s: the inventory is %v", name, entries(mr))
		}
	}
}
