package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestContractDecoding: every key of every Secret is read as a stream of YAML or JSON documents, whatever its name.
func TestContractDecoding(t *testing.T) {
	f := newFixture(t)
	json := func(name string) string {
		return f.here(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"NS"},"data":{"key":"1"}}`)
	}
	f.secret("first",
		"objects.yaml", "---\n# nothing\n---\n"+f.configMap("a1", "1")+"---\n---\n"+f.configMap("a2", "1")+"---\n",
		"no-suffix", f.configMap("b", "1"),
		"list.json", json("c1")+"\n"+json("c2"),
		"data.yaml.br", compressed(t, []byte(f.configMap("d", "1"))),
		"x.br", compressed(t, []byte(json("e"))),
		"empty", "", "null.yaml", "null\n", "comment", "# only this\n",
	)
	f.secret("second", "objects.yaml", f.configMap("g", "1"),
		"items.yaml", "apiVersion: v1\nkind: List\nitems: ["+json("h1")+", "+json("h2")+"]\n",
		"typed.yaml", f.here("apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: i, namespace: NS}, data: {key: \"1\"}}]\n"))
	f.managedResource("set", "first", "second")
	mr := f.reconcileOK("set")
	var names []string
	for _, name := range []string{"a1", "a2", "b", "c1", "c2", "d", "e", "g", "h1", "h2", "i"} {
		f.wantConfigMap(name, "1")
		names = append(names, "v1 ConfigMap "+f.namespace+" "+name)
	}
	if got := entries(mr); !slices.Equal(got, names) {
		t.Errorf("the inventory is %v", got)
	}
}

// TestContractDecodingFailure: the message names Secret, key and index for every invalid document, the valid
// documents are applied, and the generation counts as observed.
func TestContractDecodingFailure(t *testing.T) {
	f := newFixture(t)
	f.secret("set", "a.yaml", f.configMap("one", "1")+"---\na: b: c\n---\n"+f.configMap("two", "1")+"---\nnonsense\n",
		"b.json", `{"apiVersion":"v1"`, "c.yaml", "metadata: {name: x}\n")
	f.managedResource("set", "set")
	mr, result, err := f.reconcile("set")
	wantRetry(t, false, result, err)
	got := applied(mr)
	if got.Status != "False" || got.Reason != "DecodingFailed" || mr.Status.ObservedGeneration != mr.Generation {
		t.Errorf("ResourcesApplied is %+v, generation %d of %d", got, mr.Status.ObservedGeneration, mr.Generation)
	}
	for _, where := range []string{"1 in 'a.yaml'", "3 in 'a.yaml'", "0 in 'b.json'", "0 in 'c.yaml'"} {
		wantContains(t, got.Message, "could not decode resource at index "+where+" in secret '"+f.namespace+"/set'")
	}
	f.wantConfigMap("one", "1")
	f.wantConfigMap("two", "1")
}

// TestContractNamespaces: objects without a namespace go to "default". Objects of cluster-scoped kinds have no
// namespace, even if the same ManagedResource creates their kind.
func TestContractNamespaces(t *testing.T) {
	f := newFixture(t)
	const role, global = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n", "Cluster"
	for i, test := range []struct{ manifest, scope, namespace string }{
		{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NS-bare}\n", "", "default"},
		{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NS-empty, namespace: \"\"}\n", "", "default"},
		{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NS-own, namespace: NS}\n", "", f.namespace},
		{role + "metadata: {name: NS-bare}\n", "", ""},
		{role + "metadata: {name: NS-own, namespace: NS}\n", "", ""},
		{"metadata: {name: NS-bare}\n", "Namespaced", "default"},
		{"metadata: {name: NS-own, namespace: NS}\n", "Namespaced", f.namespace},
		{"metadata: {name: NS-bare}\n", global, ""},
		{"metadata: {name: NS-own, namespace: NS}\n", global, ""},
	} {
		manifest, definition := test.manifest, ""
		if test.scope != "" {
			group := fmt.Sprintf("g%d.NS.example.org", i)
			definition = strings.NewReplacer("GROUP", group, "Namespaced", test.scope).Replace(twins)
			manifest = "apiVersion: " + group + "/v1\nkind: Twin\n" + manifest
		}
		mr := f.manage("set", f.here(manifest), f.here(definition))
		mr = f.reconcileOK(mr.Name)
		live := f.parse(manifest)
		live.SetNamespace(test.namespace)
		if err := f.client.Get(f.ctx, client.ObjectKeyFromObject(live), live); err != nil {
			t.Errorf("%s: %v", manifest, err)
		}
		line := strings.Join([]string{live.GetAPIVersion(), live.GetKind(), test.namespace, live.GetName()}, " ")
		if !slices.Contains(entries(mr), line) {
			t.Errorf("%s: the inventory is %v", manifest, entries(mr))
		}
		f.delete(mr)
	}
}

// TestContractTruthyValues lists the annotation values that mean true.
func TestContractTruthyValues(t *testing.T) {
	f := newFixture(t)
	values := []string{"1", "t", "T", "true", "TRUE", "True", "0", "false", "yes", "on", "tRUE", "", " true"}
	const good = 6 // the number of values that mean true
	var manifests []string
	for i, value := range values {
		manifests = append(manifests, f.configMap(fmt.Sprint("kept-", i), "1"),
			f.marked(fmt.Sprint("ignored-", i), "annotations: {resources.gardener.cloud/ignore: \""+value+"\"}"))
	}
	f.manage("set", manifests...)
	f.reconcileOK("set")
	for i, value := range values {
		if bare := f.liveConfigMap(fmt.Sprint("ignored-", i)).Labels == nil; bare != (i < good) {
			t.Errorf("ignore %q on an object: left without marks: %t", value, bare)
		}
		f.edit(f.configMap(fmt.Sprint("kept-", i), ""), "somebody", func(object *unstructured.Unstructured) {
			must(t, unstructured.SetNestedField(object.Object, value, "metadata", "annotations", "resources.gardener.cloud/keep-object"))
		})
	}
	f.secret("set", "objects.yaml", "# nothing")
	f.reconcileOK("set")
	for i, value := range values {
		if kept := f.liveConfigMap(fmt.Sprint("kept-", i)) != nil; kept != (i < good) {
			t.Errorf("keep-object %q: kept: %t", value, kept)
		}
		name := fmt.Sprint("ignored-itself-", i)
		mr := f.manage(name, f.configMap(name, "1"))
		f.change(mr, func() { mr.Annotations = map[string]string{"resources.gardener.cloud/ignore": value} })
		f.reconcileOnce(name)
		if ignored := f.liveConfigMap(name) == nil; ignored != (i < good) {
			t.Errorf("ignore %q on a ManagedResource: ignored: %t", value, ignored)
		}
	}
}

// TestContractModeIgnore: the value is compared literally. Objects that were never ours, or that now belong to
// another owner, are not touched.
func TestContractModeIgnore(t *testing.T) {
	f := newFixture(t)
	mode := func(value string) string { return "annotations: {resources.gardener.cloud/mode: " + value + "}" }
	f.manage("set", f.marked("lower", mode("ignore")), f.marked("never", mode("Ignore")), f.configMap("theirs", "1"), f.configMap("gone", "1"))
	f.reconcileOK("set")
	f.wantConfigMap("lower", "1")
	f.wantNoConfigMap("never")
	f.edit(f.configMap("theirs", ""), "somebody", func(object *unstructured.Unstructured) {
		object.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: f.namespace + "/other"})
	})
	must(t, f.client.Delete(f.ctx, f.liveConfigMap("gone")))
	before := f.liveConfigMap("theirs").ResourceVersion
	f.secret("set", "objects.yaml", strings.Join([]string{
		f.marked("lower", mode("ignore")), f.marked("theirs", mode("Ignore")), f.marked("gone", mode("Ignore")),
	}, "---\n"))
	mr := f.reconcileOK("set")
	if after := f.liveConfigMap("theirs").ResourceVersion; after != before {
		t.Error("an object of another owner was released")
	}
	f.wantNoConfigMap("gone")
	if got := entries(mr); !slices.Equal(got, []string{"v1 ConfigMap " + f.namespace + " lower"}) {
		t.Errorf("the inventory is %v", got)
	}
}

// TestLabelsThatAreNoStrings: numbers and booleans are converted. The condition reports that, and pruning goes on.
func TestLabelsThatAreNoStrings(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"), f.configMap("two", "1"))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.marked("one", "labels: {version: 1, enabled: true}\n  annotations: {limit: 1.5}"))
	mr := f.reconcileOK("set")
	wantContains(t, applied(mr).Message, "Converted to strings; quote them in the manifests (1): v1/ConfigMap/"+f.namespace+
		`/one: metadata.labels["enabled"], metadata.labels["version"], metadata.annotations["limit"]`)
	live := f.liveConfigMap("one")
	if live.Labels["version"] != "1" || live.Labels["enabled"] != "true" || live.Annotations["limit"] != "1.5" {
		t.Errorf("the labels are %v, the annotations %v", live.Labels, live.Annotations)
	}
	f.wantNoConfigMap("two")
	f.requests.writes()
	if again := f.reconcileOK("set"); applied(again).Message != applied(mr).Message || len(f.requests.writes()) > 0 {
		t.Errorf("the next reconcile writes, or its message is %q", applied(again).Message)
	}
}

// TestContractIgnoredLater: an object that becomes ignored is no longer touched.
func TestContractIgnoredLater(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	before := f.liveConfigMap("one").ResourceVersion
	f.secret("set", "objects.yaml", strings.Replace(f.marked("one", "annotations: {resources.gardener.cloud/ignore: \"true\"}"), `"1"`, `"2"`, 1))
	mr = f.reconcileOK(mr.Name)
	if f.wantConfigMap("one", "1").ResourceVersion != before || len(mr.Status.Resources) != 1 {
		t.Errorf("the object was updated, or left the inventory %v", mr.Status.Resources)
	}
	f.delete(mr)
	f.wantNoConfigMap("one")
}

// TestContractManifestDecides: annotations that make an object ignored or scaled are read from its manifest, not from
// the live object.
func TestContractManifestDecides(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("ignored", "1"), f.configMap("released", "1"), f.webWithReplicas(2, ""))
	f.reconcileOK("set")
	for manifest, annotation := range map[string]string{
		f.configMap("ignored", ""): "ignore", f.configMap("released", ""): "mode", f.web(""): "preserve-replicas",
	} {
		f.edit(manifest, "kubectl-annotate", func(object *unstructured.Unstructured) {
			value := map[bool]string{true: "Ignore", false: "true"}[annotation == "mode"]
			must(t, unstructured.SetNestedField(object.Object, value, "metadata", "annotations", "resources.gardener.cloud/"+annotation))
		})
	}
	f.scale(1)
	f.secret("set", "objects.yaml", strings.Join([]string{
		f.configMap("ignored", "2"), f.configMap("released", "2"), f.webWithReplicas(2, "new: change"),
	}, "---\n"))
	mr := f.reconcileOK("set")
	f.wantConfigMap("ignored", "2")
	f.wantConfigMap("released", "2")
	f.wantReplicas(2)
	if len(mr.Status.Resources) != 3 {
		t.Errorf("the inventory is %v", entries(mr))
	}
}
