package integration

import (
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// The tests with the prefix TestContract check the behavior that users of gardener-resource-manager can observe, row
// by row of docs/compatibility.md.

const (
	finalizer = "resources.gardener.cloud/gardener-resource-manager"

	podTemplate = "{metadata: {labels: {app: x, injected: manifest}}, spec: {containers: [{name: c, image: c}]}}"
	jobTemplate = "{metadata: {labels: {app: x, injected: manifest}}, spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}"
	claim       = "{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
	// twins defines a kind in the group GROUP.
	twins = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: twins.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: twins, kind: Twin}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`
)

// here replaces every NS in a manifest by the fixture's namespace.
func (f *fixture) here(manifest string) string {
	return strings.ReplaceAll(manifest, "NS", f.namespace)
}

// object reads the live object that a manifest names.
func (f *fixture) object(manifest string) *unstructured.Unstructured {
	f.Helper()
	object := f.parse(manifest)
	must(f, f.client.Get(f.ctx, client.ObjectKeyFromObject(object), object))
	return object
}

func (f *fixture) parse(manifest string) *unstructured.Unstructured {
	f.Helper()
	object := &unstructured.Unstructured{}
	must(f, yaml.Unmarshal([]byte(f.here(manifest)), &object.Object))
	return object
}

// edit changes the live object that a manifest names, as the given field manager.
func (f *fixture) edit(manifest, manager string, change func(*unstructured.Unstructured)) {
	f.Helper()
	object := f.object(manifest)
	patch := client.MergeFrom(object.DeepCopy())
	change(object)
	must(f, f.client.Patch(f.ctx, object, patch, client.FieldOwner(manager)))
}

// refresh reads a ManagedResource again and changes it.
func (f *fixture) refresh(mr *resourcesv1alpha1.ManagedResource, change func()) {
	f.Helper()
	must(f, f.client.Get(f.ctx, client.ObjectKeyFromObject(mr), mr))
	f.change(mr, change)
}

// at returns a field of an object, or nil if the field is not set.
func at(object *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	return value
}

// sentRequest is a request as sent.
type sentRequest struct{ method, path, query, contentType, body string }

// requestBodies records requests with their bodies.
type requestBodies struct {
	mu   sync.Mutex
	sent []sentRequest
}

func (b *requestBodies) keep(request *http.Request) error {
	kept := sentRequest{
		method: request.Method, path: request.URL.Path, query: request.URL.RawQuery,
		contentType: request.Header.Get("Content-Type"),
	}
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return err
		}
		content, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		kept.body = string(content)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, kept)
	return nil
}

// of returns the requests with one method, in order.
func (b *requestBodies) of(method string) []sentRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	var sent []sentRequest
	for _, request := range b.sent {
		if request.method == method {
			sent = append(sent, request)
		}
	}
	return sent
}

// keepBodies records all further requests to the target cluster with their bodies.
func (f *fixture) keepBodies() *requestBodies {
	bodies := &requestBodies{}
	f.requests.breakWith(bodies.keep)
	return bodies
}

// patch changes the live object that a manifest names by a merge patch, as the given field manager.
func (f *fixture) patch(manifest, manager, patch string) {
	f.Helper()
	must(f, f.client.Patch(f.ctx, f.object(manifest), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)))
}

// marked returns the manifest of a ConfigMap with further lines of metadata.
func (f *fixture) marked(name, metadata string) string {
	return strings.Replace(f.configMap(name, "1"), "metadata:\n", "metadata:\n  "+metadata+"\n", 1)
}

// entries returns the entries of an inventory as text, in order.
func entries(mr *resourcesv1alpha1.ManagedResource) []string {
	var lines []string
	for _, r := range mr.Status.Resources {
		lines = append(lines, strings.Join([]string{r.APIVersion, r.Kind, r.Namespace, r.Name}, " "))
	}
	return lines
}

// read returns a ManagedResource.
func (f *fixture) read(name string) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	must(f, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, mr))
	return mr
}
