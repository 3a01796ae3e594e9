package validation

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/webhooks/deletionprotection"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestNames checks that a name must be a DNS subdomain by the rules of Kubernetes.
func TestNames(t *testing.T) {
	f := newFixture(t)
	f.eachKind(func(kind, spec string) {
		object := f.object(kind, "a.b-c.1", spec)
		f.create(object)
		generated := f.object(kind, "", spec)
		generated.SetName("")
		generated.SetGenerateName("generated-")
		f.create(generated)
	})
}

// TestObjectBeingDeleted checks that the spec can no longer change. Metadata can, and finalizers can be removed.
func TestObjectBeingDeleted(t *testing.T) {
	f := newFixture(t)
	f.eachKind(func(kind, spec string) {
		object := f.object(kind, "object", spec)
		object.SetFinalizers([]string{"example.com/a", "example.com/b"})
		object.SetAnnotations(map[string]string{deletionprotection.AnnotationConfirmation: "true"})
		f.create(object)
		kit.Must(f, f.client.Delete(f.Context(), object))
		for _, patch := range append([]string{`{futureField: {a: c}}`, `{type: null}`, `x`}, mutableChanges[kind]...) {
			object = f.read(kind, "object")
			object.Object["spec"] = fromYAML(f, patched(f, spec, patch))
			if fmt.Sprint(object.Object["spec"]) == fmt.Sprint(fromYAML(f, spec)) || kind == "Etcd" && patch == `{type: null}` {
				continue // no change
			}
			if got := f.causes(f.client.Update(f.Context(), object)); !match(got, []string{"spec: Forbidden: the object is being deleted"}) {
				f.Errorf("%s with %s: got %q", kind, patch, got)
			}
		}
		object = f.read(kind, "object")
		object.SetAnnotations(map[string]string{"a": "b"})
		object.SetFinalizers([]string{"example.com/b"})
		// Go clients omit fields, or write fields that were not there.
		kit.Must(f, unstructured.SetNestedField(object.Object, "", "spec", "emptyField"))
		kit.Must(f, f.client.Update(f.Context(), object))
		kit.Must(f, f.client.Patch(f.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(object), object); client.IgnoreNotFound(err) != nil || err == nil {
			f.Errorf("%s still exists: %v", kind, err)
		}
	})
}

// TestOlderThanTheWebhook checks that an invalid object can be annotated and deleted, that its finalizers can be removed, and that it
// can be corrected as far as its fields are mutable.
func TestOlderThanTheWebhook(t *testing.T) {
	f := newUnguarded(t)
	const gone, repaired = "gone", "repaired"
	f.eachKind(func(kind, _ string) {
		for _, name := range []string{gone, repaired} {
			object := f.object(kind, name, `{replicas: -1, pools: of the wrong type}`)
			object.SetLabels(nil) // the webhooks of cluster-scoped kinds select by labels
			object.SetFinalizers([]string{"example.com/a"})
			f.create(object)
		}
	})
	f.guard()
	f.eachKind(func(kind, spec string) {
		for _, patch := range []string{
			`{"metadata":{"labels":{"` + testLabel + `":"` + f.namespace + `"}}}`,
			`{"metadata":{"annotations":{"` + deletionprotection.AnnotationConfirmation + `":"true"}}}`,
		} {
			kit.Must(f, f.client.Patch(f.Context(), f.object(kind, gone, "{}"), client.RawPatch(types.MergePatchType, []byte(patch))))
		}
		kit.Must(f, f.client.Delete(f.Context(), f.object(kind, gone, "{}")))
		kit.Must(f, f.client.Patch(f.Context(), f.object(kind, gone, "{}"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))

		object := f.read(kind, repaired)
		object.SetLabels(map[string]string{testLabel: f.namespace})
		object.Object["spec"] = fromYAML(f, `{replicas: -2}`)
		if got := f.causes(f.client.Update(f.Context(), object)); len(got) == 0 {
			f.Errorf("%s: another invalid spec is accepted", kind)
		}
		object.Object["spec"] = fromYAML(f, spec)
		for _, cause := range f.causes(f.client.Update(f.Context(), object)) {
			if !strings.HasSuffix(cause, ": field is immutable") {
				f.Errorf("%s cannot be corrected: %s", kind, cause)
			}
		}
	})
}

// TestStatusIsNotValidated checks that extensions can write any status.
func TestStatusIsNotValidated(t *testing.T) {
	f := newFixture(t)
	f.eachKind(func(kind, spec string) {
		object := f.object(kind, "object", spec)
		f.create(object)
		object.Object["status"] = fromYAML(f, `{extensionFiles: [{path: /etc/a}, {path: /etc/a}], lastOperation: {state: Succeeded}}`)
		kit.WriteStatus(f, f.client, object)
	})
}

// TestFilesOfExtensions checks that units may require files that extensions added in the status, and that these count as duplicates.
func TestFilesOfExtensions(t *testing.T) {
	f := newFixture(t)
	const kind = "OperatingSystemConfig"
	object := f.object(kind, "object", `{type: a, purpose: reconcile}`)
	f.create(object)
	object.Object["status"] = fromYAML(f, `{extensionFiles: [{path: /x}, {path: /y, hostName: one}]}`)
	kit.WriteStatus(f, f.client, object)
	for patch, want := range map[string][]string{
		`{units: [{name: a, filePaths: [/x, /y]}]}`: nil,
		`{units: [{name: a, filePaths: [/z]}]}`:     {`spec.units[0].filePaths[0]: Invalid value: "/z"`},

		`{files: [{path: /x, content: {inline: {data: a}}}]}`:                {`status.extensionFiles[0].path: Duplicate value: "/x"`},
		`{files: [{path: /x, hostName: one, content: {inline: {data: a}}}]}`: {`status.extensionFiles[0].path: Duplicate value: "/x"`},
		`{files: [{path: /y, hostName: one, content: {inline: {data: a}}}]}`: {`status.extensionFiles[1].path: Duplicate value: "/y"`},
		`{files: [{path: /y, hostName: two, content: {inline: {data: a}}}]}`: nil,
	} {
		object := f.read(kind, "object")
		object.Object["spec"] = fromYAML(f, patched(f, `{type: a, purpose: reconcile}`, patch))
		if got := f.causes(f.client.Update(f.Context(), object)); !match(got, want) {
			f.Errorf("%s: got %q, want %q", patch, got, want)
		}
	}
}

// TestWrongTypes checks that the message names the field and does not reveal its content.
func TestWrongTypes(t *testing.T) {
	f := newFixture(t)
	f.eachKind(func(kind, _ string) {
		text := "the object is not a valid " + kind + " of version " + kindOf(f, kind).GroupVersion().String() + ": spec"
		f.wantRefused(f.client.Create(f.Context(), f.object(kind, "a", `hidden`)), http.StatusBadRequest, text+" must be a mapping")
		field := "type"
		if kind == "Etcd" {
			field = "etcd"
		}
		err := f.client.Create(f.Context(), f.object(kind, "a", `{`+field+`: [hidden]}`))
		want := text + "." + field + " must be a string"
		if kind == "Etcd" {
			want = text + "." + field + " must be a mapping"
		}
		f.wantRefused(err, http.StatusBadRequest, want)
	})
	for spec, want := range map[string]string{
		`{pools: {}}`: "spec.pools must be a list", `{pools: [{nodeTemplate: 1}]}`: "spec.pools.nodeTemplate must be a mapping",
	} {
		f.wantRefused(f.client.Create(f.Context(), f.object("Worker", "a", spec)), http.StatusBadRequest, want)
	}
	for _, spec := range []string{`{port: 1.5}`, `{port: 4294967296}`, `{port: "1"}`} {
		f.wantRefused(f.client.Create(f.Context(), f.object("SelfHostedShootExposure", "a", spec)), http.StatusBadRequest,
			"spec.port must be a whole number of at most 32 bits")
	}
}

// TestManyErrors checks that an object may have any number of errors, and that a refusal lists the first hundred.
func TestManyErrors(t *testing.T) {
	f := newFixture(t)
	pools := strings.Repeat("{},", 1000)
	got := f.causes(f.client.Create(f.Context(), f.object("Worker", "a", patched(f, located, `{pools: [`+pools+`]}`))))
	if len(got) != 101 || !strings.HasPrefix(got[100], "spec: Forbidden: there are more errors") {
		f.Errorf("got %d errors, the last one is %q", len(got), got[len(got)-1])
	}
}
