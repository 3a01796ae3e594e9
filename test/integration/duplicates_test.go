package integration

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// accepted are manifests that a decoder accepts, but that server-side apply rejects or treats differently.
var accepted = map[string]struct {
	path, manifest string
	// dropped is the duplicate that the API server stores twice if it is sent twice.
	dropped string
	// left is set if a live object keeps the duplicate, because such a field is left unchanged.
	left bool
}{
	"null labels and annotations": {
		path:     "/api/v1/namespaces/NS/configmaps",
		manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: NS, labels: {a: null, b: x}, annotations: {c: null}}\ndata: {k: null}",
	},
	"null in the data of a Secret": {
		path:     "/api/v1/namespaces/NS/secrets",
		manifest: "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME, namespace: NS}\ndata: {k: null, l: eA==}\nstringData: {m: null, l: null}",
	},
	"null labels of a pod template": {
		path: "/apis/apps/v1/namespaces/NS/deployments",
		manifest: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME, namespace: NS}\nspec: {selector: {matchLabels: {app: x}}, " +
			"template: {metadata: {labels: {app: x, b: null}}, spec: {nodeSelector: {p: null}, containers: [{name: c, image: c}]}}}",
	},
	"an environment variable given twice": {
		path: "/apis/apps/v1/namespaces/NS/deployments",
		manifest: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME, namespace: NS}\nspec: {selector: {matchLabels: {app: x}}, " +
			"template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: c, " +
			"env: [{name: A, value: '1'}, {name: B, value: b}, {name: A, value: '2'}]}]}}}",
		dropped: `{"name":"A","value":"1"},`,
	},
	"a port given twice": {
		path: "/api/v1/namespaces/NS/replicationcontrollers",
		manifest: "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: NAME, namespace: NS, labels: {app: x}}\nspec: {selector: {app: x}, replicas: 0, " +
			"template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: c, ports: [{containerPort: 80}, {containerPort: 80}]}]}}}",
		dropped: `{"containerPort":80,"protocol":"TCP"},`,
	},
	"a pull secret given twice": {
		path:     "/api/v1/namespaces/NS/serviceaccounts",
		manifest: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: NAME, namespace: NS}\nimagePullSecrets: [{name: a}, {name: a}]",
		dropped:  `{"name":"a"},`, left: true,
	},
	"a finalizer given twice": {
		path:     "/api/v1/namespaces/NS/configmaps",
		manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: NS, finalizers: [example.org/a, example.org/a]}",
		dropped:  `"example.org/a",`,
	},
}

// TestUpdateValidation applies manifests that gardener-resource-manager accepts, because it updates objects. The
// result must be the same as there, except entries without effect, and must be stable.
func TestUpdateValidation(t *testing.T) {
	for name, test := range accepted {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			manifest := func(object string) string {
				return strings.NewReplacer("NS", f.namespace, "NAME", object).Replace(test.manifest)
			}
			path := strings.ReplaceAll(test.path, "NS", f.namespace)
			f.post(path, manifest("created"))
			f.post(path+"?fieldManager=gardener-resource-manager", manifest("taken"))
			f.manage("set", manifest("applied"), manifest("taken"))
			f.reconcileOK("set")
			f.wantQuiet("set")
			var obj unstructured.Unstructured
			must(t, yaml.Unmarshal([]byte(test.manifest), &obj.Object))
			created := f.essence(obj.GetAPIVersion(), obj.GetKind(), "created")
			applied := f.essence(obj.GetAPIVersion(), obj.GetKind(), "applied")
			if test.dropped != "" && !strings.Contains(created, test.dropped) {
				t.Errorf("the API server itself stores %s only once", test.dropped)
			}
			if created = strings.Replace(created, test.dropped, "", 1); applied != created {
				t.Errorf("applied: %s\ncreated: %s", applied, created)
			}
			taken := f.essence(obj.GetAPIVersion(), obj.GetKind(), "taken")
			if test.left {
				taken = strings.Replace(taken, test.dropped, "", 1)
			}
			if applied != taken {
				t.Errorf("applied: %s\ntaken over: %s", applied, taken)
			}
		})
	}
}

// post creates an object from its bytes. A client could change them first.
func (f *fixture) post(path, manifest string) {
	f.Helper()
	config := rest.CopyConfig(shared.Get(f).Config())
	client, err := rest.HTTPClientFor(config)
	must(f, err)
	body, err := yaml.YAMLToJSON([]byte(manifest))
	must(f, err)
	request, err := http.NewRequestWithContext(f.ctx, http.MethodPost, strings.TrimSuffix(config.Host, "/")+path, bytes.NewReader(body))
	must(f, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	must(f, err)
	must(f, response.Body.Close())
	if response.StatusCode != http.StatusCreated {
		f.Fatalf("the API server returns %s", response.Status)
	}
}

// essence returns an object as JSON, without fields that differ between any two objects and without our marks.
func (f *fixture) essence(apiVersion, kind, name string) string {
	f.Helper()
	obj := f.getObject(apiVersion, kind, name)
	for _, field := range []string{"name", "uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	delete(obj.Object, "status")
	for _, mark := range []string{"labels", "annotations"} {
		for _, key := range []string{"managed-by", "origin", "description"} {
			unstructured.RemoveNestedField(obj.Object, "metadata", mark, "resources.gardener.cloud/"+key)
			unstructured.RemoveNestedField(obj.Object, "spec", "template", "metadata", mark, "resources.gardener.cloud/"+key)
		}
		unstructured.RemoveNestedField(obj.Object, "metadata", mark, "deployment.kubernetes.io/revision")
		if values, _, _ := unstructured.NestedMap(obj.Object, "metadata", mark); len(values) == 0 {
			unstructured.RemoveNestedField(obj.Object, "metadata", mark)
		}
	}
	body, err := json.Marshal(obj.Object)
	must(f, err)
	return string(body)
}

// TestDuplicatesThatMatterAreNamed checks that the message names duplicates with different values, so that users need
// not guess which value applies.
func TestDuplicatesThatMatterAreNamed(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.web("        env: [{name: A, value: '1'}, {name: B, value: $(A)}, {name: A, value: '2'}]\n"))
	mr, result, err := f.reconcile("set")
	wantContains(t, applied(mr).Message, "duplicate entries", "env", `name="A"`)
	wantRetry(t, false, result, err)
}
