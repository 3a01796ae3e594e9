package installation

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/helmchart"
)

var key = flow.Key{Namespace: "garden", Name: "example-1"}

// contents returns the objects of a bundle, as they are sent, by kind and name.
func contents(t *testing.T, in Inputs) map[string]*unstructured.Unstructured {
	t.Helper()
	bundle, err := in.Bundle(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	secrets, mr, err := flow.Render(ownerOf(in.Installation), bundle, scheme)
	if err != nil {
		t.Fatal(err)
	}
	if mr.Labels[labelInstallation] != "example-1" || mr.Labels[labelRegistration] != "example" || *mr.Spec.Class != "seed" {
		t.Errorf("the ManagedResource is %+v", mr.ObjectMeta)
	}
	objects, err := flow.Rendered{Bundle: bundle, Secrets: secrets, ManagedResource: mr}.Contents()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*unstructured.Unstructured{}
	for _, object := range objects {
		found[object.GetKind()+"/"+object.GetName()] = object
	}
	return found
}

// TestBundle checks that all objects of an extension are in one bundle.
func TestBundle(t *testing.T) {
	in := inputs(t, map[string]string{
		"deployment.yaml": deployment,
		"list.yaml":       "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n",
		"NOTES.txt":       "Thank you.",
	})
	in.setValues(`{"replicas": 3}`)
	in.Installation.Annotations = map[string]string{"security.gardener.cloud/pod-security-enforce": "baseline"}
	found := contents(t, in)
	namespace := found["Namespace/extension-example-1"]
	if namespace == nil || len(found) != 4 {
		t.Fatalf("the bundle has %v", found)
	}
	want := map[string]string{
		"gardener.cloud/role": "extension", "controllerregistration.core.gardener.cloud/name": "example",
		"high-availability-config.resources.gardener.cloud/consider": "true", "pod-security.kubernetes.io/enforce": "baseline",
	}
	if got := namespace.GetLabels(); !reflect.DeepEqual(got, want) {
		t.Errorf("labels of the namespace: %v", got)
	}
	if got := namespace.GetAnnotations()["high-availability-config.resources.gardener.cloud/zones"]; got != "a,b" {
		t.Errorf("zones of the namespace: %q", got)
	}
	text, err := yaml.Marshal(found["Deployment/example"].Object)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"replicas: 3", "namespace: extension-example-1", "name: SEED_NAME\n          value: one"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the Deployment has no %q:\n%s", part, text)
		}
	}
	if strings.Contains(string(text), "GARDEN_KUBECONFIG") {
		t.Errorf("the Deployment has access to the garden:\n%s", text)
	}
	in.SeedIsGarden = true
	if contents(t, in)["Namespace/extension-example-1"].GetLabels()["networking.gardener.cloud/access-target-apiserver"] != "allowed" {
		t.Error("in the garden, the namespace has no access to its API server")
	}
}

// TestGardenAccess checks that workloads in the extension's own namespace get a kubeconfig and a token, unless they opt out.
func TestGardenAccess(t *testing.T) {
	in := inputs(t, map[string]string{
		"deployment.yaml": deployment,
		"other.yaml":      strings.NewReplacer("{{ .Release.Namespace }}", "kube-system", "name: example\n  namespace", "name: other\n  namespace").Replace(deployment),
		"cronjob.yaml": `apiVersion: batch/v1
kind: CronJob
metadata: {name: clean, namespace: {{ .Release.Namespace }}}
spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: clean, env: [{name: GARDEN_KUBECONFIG, value: own}]}]}}}}}
`,
		"name.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: names}\ndata: {secret: {{ .Values.gardener.garden.genericKubeconfigSecretName }}}\n",
	})
	in.Deployment.InjectGardenKubeconfig = ptr.To(true)
	found := contents(t, in)
	secret, access := found["Secret/"+named(found, "Secret/generic-garden-kubeconfig-")], found["Secret/garden-access-extension"]
	if secret == nil || access == nil {
		t.Fatalf("the bundle has %v", found)
	}
	if got, _, _ := unstructured.NestedString(found["ConfigMap/names"].Object, "data", "secret"); got != secret.GetName() {
		t.Errorf("the value is %q, want %q", got, secret.GetName())
	}
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", "kubeconfig")
	kubeconfig, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !strings.Contains(string(kubeconfig), "server: https://garden.example.org") ||
		!strings.Contains(string(kubeconfig), "tokenFile: /var/run/secrets/gardener.cloud/garden/generic-kubeconfig/token") {
		t.Errorf("the kubeconfig is %s, %v", kubeconfig, err)
	}
	if got := access.GetAnnotations(); got["serviceaccount.resources.gardener.cloud/name"] != "extension-example-1" ||
		got["serviceaccount.resources.gardener.cloud/namespace"] != "seed-one" || access.GetLabels()["resources.gardener.cloud/class"] != "garden" {
		t.Errorf("the Secret for the token is %v %v", got, access.GetLabels())
	}
	texts := map[string]string{}
	for _, name := range []string{"Deployment/example", "Deployment/other", "CronJob/clean"} {
		text, err := yaml.Marshal(found[name].Object)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	for part, count := range map[string]int{"name: GARDEN_KUBECONFIG": 2, "name: SEED_NAME": 2, "mountPath: /var/run/secrets": 2, "projected:": 1, secret.GetName(): 1} {
		if got := strings.Count(texts["Deployment/example"], part); got != count {
			t.Errorf("the Deployment has %q %d times, want %d:\n%s", part, got, count, texts["Deployment/example"])
		}
	}
	if strings.Contains(texts["Deployment/other"], "garden-kubeconfig") || strings.Contains(texts["Deployment/other"], "SEED_NAME") {
		t.Errorf("a workload of another namespace was changed:\n%s", texts["Deployment/other"])
	}
	if strings.Count(texts["CronJob/clean"], "GARDEN_KUBECONFIG") != 1 || !strings.Contains(texts["CronJob/clean"], "value: own") {
		t.Errorf("the variable of the chart was replaced:\n%s", texts["CronJob/clean"])
	}
}

// TestGardenAccessDeclined checks that no token for the garden is requested if no workload uses it.
func TestGardenAccessDeclined(t *testing.T) {
	for value, uses := range map[string]bool{"true": true, "false": false, "no": false} {
		in := inputs(t, map[string]string{"deployment.yaml": deployment})
		in.Deployment.InjectGardenKubeconfig = ptr.To(true)
		in.setValues(`{"labels": {"extensions.gardener.cloud/inject-garden-kubeconfig": "` + value + `"}}`)
		found := contents(t, in)
		text, err := yaml.Marshal(found["Deployment/example"].Object)
		if err != nil {
			t.Fatal(err)
		}
		if (found["Secret/garden-access-extension"] != nil) != uses || strings.Contains(string(text), "garden-kubeconfig\n") && !uses {
			t.Errorf("label %s: the bundle has %v\n%s", value, found, text)
		}
	}
}

// named returns the rest of the first key with the given prefix.
func named(found map[string]*unstructured.Unstructured, prefix string) string {
	for key := range found {
		if strings.HasPrefix(key, prefix) {
			return key[len("Secret/"):]
		}
	}
	return ""
}

// TestValues checks that charts get the values that gardenlet provides, and data of resources.
func TestValues(t *testing.T) {
	in := inputs(t, nil)
	in.setValues(`{"replicas": 2, "gardener": {"version": "mine", "own": 1}, "list": ["{{ .resources.settings.data.a.b }}-{{-.resources.login.data.password-}}", 1, null], "deep": {"plain": "x"}}`)
	in.Resources = map[string]map[string]string{"settings": {"a.b": "c"}, "login": {"password": "secret!"}}
	values, err := in.values()
	if err != nil {
		t.Fatal(err)
	}
	gardener, _ := values["gardener"].(map[string]any)
	seed, _ := gardener["seed"].(map[string]any)
	for path, test := range map[string]struct{ got, want any }{
		"replicas": {values["replicas"], 2.0}, "list": {values["list"], []any{"c-secret!", 1.0, nil}}, "version": {gardener["version"], "v1"}, "own": {gardener["own"], 1.0},
		"garden": {gardener["garden"], map[string]any{"clusterIdentity": "my-garden", "identifier": "uid-of-garden"}}, "gates": {gardener["gardenlet"], map[string]any{"featureGates": map[string]any{"Some": true}}},
		"name": {seed["name"], "one"}, "identifier": {seed["identifier"], "one"}, "identity": {seed["clusterIdentity"], "seed-one"}, "labels": {seed["labels"], map[string]any{"region": "eu"}},
		"provider": {seed["provider"], "local"}, "region": {seed["region"], "local"}, "protected": {seed["protected"], true}, "visible": {seed["visible"], true},
		"domain": {seed["ingressDomain"], "ingress.example.org"}, "blocked": {seed["blockCIDRs"], []any{"169.254.169.254/32"}},
	} {
		if !reflect.DeepEqual(test.got, test.want) {
			t.Errorf("%s: got %#v, want %#v", path, test.got, test.want)
		}
	}
	if spec, _ := seed["spec"].(map[string]any); spec["provider"] == nil {
		t.Errorf("the specification of the Seed is %v", seed["spec"])
	}
}

// TestInvalid checks that errors name the problem of a chart or its values, with the template and the line, and without data of
// Secrets.
func TestInvalid(t *testing.T) {
	for name, test := range map[string]struct {
		templates map[string]string
		change    func(*Inputs)
		reason    string
		want      []string
	}{
		"a template that does not parse": {map[string]string{"a.yaml": "a: b\nc: {{ if }}\n"}, nil, reasonRender, []string{"example/templates/a.yaml:2"}},
		"a value that is missing": {map[string]string{"a.yaml": "a: b\n\nc: {{ required \"region is required\" .Values.region }}\n"}, nil, reasonRender,
			[]string{"example/templates/a.yaml:3", "region is required"}},
		"an object that is missing": {map[string]string{"a.yaml": "c: {{ .Values.region.name }}\n"}, nil, reasonRender, []string{"example/templates/a.yaml:1", ".Values.region.name"}},
		"a hook": {map[string]string{"job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations:\n    helm.sh/hook: pre-upgrade\n"}, nil, reasonRender,
			[]string{"example/templates/job.yaml:6", "Job migrate", "helm.sh/hook: pre-upgrade"}},
		"no YAML":         {map[string]string{"a.yaml": "a: b: c\n"}, nil, reasonRender, []string{"example/templates/a.yaml", "not YAML"}},
		"no kind":         {map[string]string{"a.yaml": "a: b\n"}, nil, reasonRender, []string{"example/templates/a.yaml", "without kind"}},
		"no archive":      {nil, func(in *Inputs) { in.Chart = []byte("chart") }, reasonRender, []string{"the archive is not a chart"}},
		"a large archive": {nil, func(in *Inputs) { in.Chart = make([]byte, helmchart.MaxArchiveBytes+1) }, reasonRender, []string{"more than the 16777216 allowed"}},
		"a library": {nil, func(in *Inputs) {
			in.Chart = archive(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: example\nversion: 1.0.0\ntype: library\n"})
		}, reasonRender, []string{"library chart"}},
		"another version of Kubernetes": {nil, func(in *Inputs) {
			in.Chart = archive(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: example\nversion: 1.0.0\nkubeVersion: <1.30\n"})
		}, reasonRender, []string{"<1.30", "1.37.1"}},
		"a dependency": {nil, func(in *Inputs) {
			in.Chart = archive(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: example\nversion: 1.0.0\ndependencies: [{name: base, version: 1.0.0}]\n"})
		}, reasonRender, []string{"base"}},
		"its own namespace": {map[string]string{"a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: {{ .Release.Namespace }}}\n"}, nil, reasonRender, []string{"extension-example-1"}},
		"a schema": {nil, func(in *Inputs) {
			in.Chart = archive(t, map[string]string{"values.schema.json": `{"properties": {"replicas": {"type": "integer"}}}`})
			in.setValues(`{"replicas": "many"}`)
		}, reasonRender, []string{"replicas"}},
		"values that are no object":     {nil, func(in *Inputs) { in.setValues(`[1]`) }, reasonValues, []string{"not a JSON object"}},
		"a resource that is not listed": {nil, func(in *Inputs) { in.setValues(`{"a": "{{ .resources.b.data.c }}"}`) }, reasonValues, []string{"b is not in the resources"}},
		"a key that is missing": {nil, func(in *Inputs) {
			in.setValues(`{"a": {"d": ["{{ .resources.b.data.c }}"]}}`)
			in.Resources = map[string]map[string]string{"b": {"x": "y"}}
		}, reasonValues, []string{"has no key c"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputs(t, test.templates)
			if test.change != nil {
				test.change(&in)
			}
			_, err := in.Bundle(t.Context(), key)
			var why *invalid
			if !errors.As(err, &why) || why.reason != test.reason {
				t.Fatalf("got %v, want the reason %s", err, test.reason)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}

// TestRedacted checks that Secret data is removed from messages.
func TestRedacted(t *testing.T) {
	in := inputs(t, map[string]string{"a.yaml": "{{ fail (printf \"wrong: %s %s\" .Values.password .Values.region) }}"})
	in.setValues(`{"password": "{{ .resources.login.data.password }}", "region": "{{ .resources.settings.data.region }}"}`)
	in.Resources = map[string]map[string]string{"login": {"password": "hunter22\n"}, "settings": {"region": "europe"}}
	in.Confidential = map[string]bool{"login": true}
	_, err := in.Bundle(t.Context(), key)
	if err == nil || !strings.Contains(err.Error(), "hunter22") {
		t.Fatalf("got %v", err)
	}
	if text := in.resources().Redact(err.Error()); strings.Contains(text, "hunter22") || !strings.Contains(text, "europe") || !strings.Contains(text, "…") {
		t.Errorf("got %q", text)
	}
}

// TestSameBytes checks that the same inputs result in the same bundle.
func TestSameBytes(t *testing.T) {
	in := inputs(t, map[string]string{"deployment.yaml": deployment})
	in.Deployment.InjectGardenKubeconfig = ptr.To(true)
	in.setValues(`{"labels": {"a": "b", "c": "d"}}`)
	first := contents(t, in)
	for range 5 {
		if again := contents(t, in); !reflect.DeepEqual(first, again) {
			t.Fatalf("got %v and %v", first, again)
		}
	}
}

// TestDeletion checks that the deletion of definitions is confirmed.
func TestDeletion(t *testing.T) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if deletion(key, nil).Tombstones[0].Confirm || deletion(key, mr).Tombstones[0].Confirm {
		t.Error("the deletion is confirmed although there are no definitions")
	}
	mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{Kind: "CustomResourceDefinition"}}
	if plan := deletion(key, mr); !plan.Tombstones[0].Confirm || !plan.Deleting {
		t.Errorf("the plan is %+v", plan)
	}
}
