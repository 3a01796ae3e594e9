package health

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// kindOf returns a kind.
func kindOf(apiVersion, kind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

// named returns an object with only a name, and for namespaced kinds the fixture's namespace.
func (f *fixture) named(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	if gvk.Kind != "CustomResourceDefinition" {
		obj.SetNamespace(f.namespace)
	}
	obj.SetName(name)
	return obj
}

// patch changes an object of the fixture's namespace with a merge patch.
func (f *fixture) patch(gvk schema.GroupVersionKind, name, patch string) {
	f.Helper()
	must(f, f.client.Patch(f.ctx, f.named(gvk, name), client.RawPatch(types.MergePatchType, []byte(f.expand(patch)))))
}

// setStatus changes the status of an object of the fixture's namespace with a merge patch.
func (f *fixture) setStatus(gvk schema.GroupVersionKind, name, status string) {
	f.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status": `+status+`}`))
	must(f, f.client.Status().Patch(f.ctx, f.named(gvk, name), patch))
}

// get reads an object of the fixture's namespace.
func (f *fixture) get(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	f.Helper()
	obj := f.named(gvk, name)
	must(f, f.client.Get(f.ctx, client.ObjectKeyFromObject(obj), obj))
	return obj
}

// part returns a field of an object. It is nil if the object does not have the field.
func part(obj *unstructured.Unstructured, field string) map[string]any {
	content, _ := obj.Object[field].(map[string]any)
	return content
}

// staysTrue checks for a while that there is no objection.
func (f *fixture) staysTrue(duration time.Duration, reason string, objection func() string) {
	f.Helper()
	end := time.NewTimer(duration)
	defer end.Stop()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if last := objection(); last != "" {
			f.Fatalf("%s: %s", reason, last)
		}
		select {
		case <-end.C:
			return
		case <-ticker.C:
		}
	}
}

// stateOf returns the state of an object of the fixture's namespace in the live view.
func (f *fixture) stateOf(gvk schema.GroupVersionKind, name string) live.State {
	f.Helper()
	ref := object.Ref{GroupVersionKind: gvk, Namespace: f.namespace, Name: name}
	return f.manager.Live.Read(f.ctx, []object.Ref{ref})[ref.Key()]
}

// setWholeStatus replaces the status of the object "app".
func (f *fixture) setWholeStatus(gvk schema.GroupVersionKind, status string) {
	f.Helper()
	f.eventually("the object exists", func() string { return textOf(f.client.Get(f.ctx, f.key("app"), f.named(gvk, "app"))) })
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "add", "path": "/status", "value": `+status+`}]`))
	must(f, f.client.Status().Patch(f.ctx, f.named(gvk, "app"), patch))
}
