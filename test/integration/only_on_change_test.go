package integration

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const operation = "gardener.cloud/operation"

// withOperation returns the manifest of a StatefulSet with an annotation that requests an operation. Annotations do
// not change its generation.
func (f *fixture) withOperation(name, value string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: %[1]s
  namespace: %[2]s
  annotations: {%[3]s: reconcile, value: %[4]q}
spec:
  serviceName: %[1]s
  replicas: %[5]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: a, image: a}]}
`, name, f.namespace, operation, value, replicas)
}

func (f *fixture) liveStatefulSet(name string) *unstructured.Unstructured {
	f.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"})
	must(f, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, found))
	return found
}

// carryOut acts like an extension: it removes the operation.
func (f *fixture) carryOut(name string) {
	f.Helper()
	found := f.liveStatefulSet(name)
	if found.GetAnnotations()[operation] == "" {
		f.Error("the object has no operation to execute")
	}
	patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, operation)))
	must(f, f.client.Patch(f.ctx, found, patch, client.FieldOwner("extension")))
}

func (f *fixture) wantOperation(name string, want bool, when string) {
	f.Helper()
	if _, found := f.liveStatefulSet(name).GetAnnotations()[operation]; found != want {
		f.Errorf("%s: the operation exists: %v", when, found)
	}
}

// TestOnlyOnChange: the operation is requested on creation, on each change of the manifest and on a correction of the
// spec, and at no other time.
func TestOnlyOnChange(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.withOperation("web", "1", 1))
	f.change(mr, func() {
		mr.Spec.DriftDetection = &resourcesv1alpha1.DriftDetection{OnlyOnChange: []resourcesv1alpha1.IgnoreRule{{
			Group: "apps", Kind: "StatefulSet", Paths: []string{"/metadata/annotations/gardener.cloud~1operation"},
		}}}
	})
	f.reconcileOK("set")
	f.wantOperation("web", true, "created")
	f.reconcileOK("set")
	f.wantOperation("web", true, "not executed yet")
	f.carryOut("web")
	f.reconcileOK("set")
	f.wantOperation("web", false, "at rest")

	f.requests.writes()
	f.restart()
	f.reconcileOK("set")
	f.wantOperation("web", false, "after a restart")
	if writes := f.requests.writes(); len(writes) > 0 {
		t.Errorf("at rest, the reconcile writes %v", writes)
	}

	patch := func(body string) {
		t.Helper()
		must(t, f.client.Patch(f.ctx, f.liveStatefulSet("web"), client.RawPatch(types.MergePatchType, []byte(body)), client.FieldOwner("somebody")))
	}
	patch(`{"metadata":{"annotations":{"value":"by hand"}}}`)
	f.reconcileOK("set")
	if f.liveStatefulSet("web").GetAnnotations()["value"] != "1" {
		t.Error("the annotation is not restored")
	}
	f.wantOperation("web", false, "a correction that does not change the generation")

	patch(`{"spec":{"replicas":3}}`)
	f.reconcileOK("set")
	f.wantOperation("web", true, "a correction of the spec")
	f.carryOut("web")

	f.secret("set", "objects.yaml", f.withOperation("web", "2", 1))
	f.reconcileOK("set")
	f.wantOperation("web", true, "another manifest")
	f.carryOut("web")

	// Without its digests, the last applied state is unknown.
	mr = f.read("set")
	mr.Status.AppliedInputs = ""
	for i := range mr.Status.Resources {
		mr.Status.Resources[i].Digest = ""
	}
	must(t, f.client.Status().Update(f.ctx, mr))
	f.reconcileOK("set")
	f.wantOperation("web", false, "the digests are lost")
	f.ask("set")
	f.reconcileOK("set")
	f.wantOperation("web", false, "everything is sent once more")
}
