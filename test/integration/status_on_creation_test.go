package integration

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// waiting is a ManagedResource with an object like that of an extension. The object's kind has a status subresource.
type waiting struct {
	*fixture
	group string
	mr    *resourcesv1alpha1.ManagedResource
}

func newWaiting(t *testing.T, name string) *waiting {
	t.Helper()
	f := newFixture(t)
	group := name + f.namespace + ".example.org"
	definition := strings.NewReplacer("GROUP", group, "{name: v1, served", "{name: v1, subresources: {status: {}}, served").Replace(twins)
	f.manage("kind", definition)
	f.reconcileUntil("kind", "the kind is served", func(mr *resourcesv1alpha1.ManagedResource) bool {
		return applied(mr).Status == resourcesv1alpha1.ConditionTrue
	})
	return &waiting{fixture: f, group: group}
}

// manifest returns the manifest of an object with an operation and a state.
func (w *waiting) manifest(name, operation, state string) string {
	return w.here(fmt.Sprintf("apiVersion: %s/v1\nkind: Twin\nmetadata: {name: %s, namespace: NS, annotations: {gardener.cloud/operation: %s}}\n"+
		"spec: {size: 1}\nstatus: {state: {machines: %s}, resources: [{name: a}]}\n", w.group, name, operation, state))
}

// declare writes the manifests, and names the object whose status is applied.
func (w *waiting) declare(named string, manifests ...string) {
	w.Helper()
	w.secret("set", "objects.yaml", strings.Join(manifests, "\n---\n"))
	if w.mr != nil {
		return
	}
	w.mr = w.managedResource("set", "set")
	w.change(w.mr, func() {
		w.mr.Spec.StatusOnCreation = []resourcesv1alpha1.ObjectSelector{{Group: w.group, Kind: "Twin", Name: named}}
		w.mr.Spec.DriftDetection = &resourcesv1alpha1.DriftDetection{OnlyOnChange: []resourcesv1alpha1.IgnoreRule{{
			Group: w.group, Kind: "Twin", Paths: []string{"/metadata/annotations/gardener.cloud~1operation"},
		}}}
	})
}

// extension changes a live object like the controller of an extension.
func (w *waiting) extension(manifest, patch string, subresource bool) {
	w.Helper()
	live, body, owner := w.object(manifest), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("extension")
	if subresource {
		must(w, w.client.Status().Patch(w.ctx, live, body, owner))
	} else {
		must(w, w.client.Patch(w.ctx, live, body, owner))
	}
}

func (w *waiting) want(when, manifest, operation string, state any) {
	w.Helper()
	live := w.object(manifest)
	if got := live.GetAnnotations()["gardener.cloud/operation"]; got != operation {
		w.Errorf("%s: the operation is %q, want %q", when, got, operation)
	}
	if got := at(live, "status", "state", "machines"); got != state {
		w.Errorf("%s: the state is %v, want %v", when, got, state)
	}
}

// TestStatusOnCreation follows an object from its creation with a state to the end of its restoration.
func TestStatusOnCreation(t *testing.T) {
	t.Parallel()
	w := newWaiting(t, "restore")
	first, other := w.manifest("x", "wait-for-state", "two"), w.manifest("other", "wait-for-state", "two")
	w.declare("x", first, other)
	w.reconcileOK("set")
	w.want("created", first, "wait-for-state", "two")
	w.want("not named", other, "wait-for-state", nil)
	w.wantRest("waiting")

	second := w.manifest("x", "restore", "three")
	w.declare("x", second, other)
	w.reconcileOK("set")
	w.want("the next revision", first, "restore", "two")
	w.extension(first, `{"status":{"state":{"machines":"four"}}}`, true)
	w.extension(first, `{"metadata":{"annotations":{"gardener.cloud/operation":null}}}`, false)
	w.reconcileOK("set")
	w.want("restored", first, "", "four")
	w.wantRest("restored")

	must(t, w.client.Delete(w.ctx, w.object(first)))
	w.reconcileOK("set")
	w.want("created again, without waiting", first, "restore", nil)
}

// TestStatusOnCreationIsWrittenOnce: a status that any client has set is not overwritten while the object waits. A
// status that could not be written is written later.
func TestStatusOnCreationIsWrittenOnce(t *testing.T) {
	t.Parallel()
	w := newWaiting(t, "once")
	first := w.manifest("x", "wait-for-state", "two")
	w.breakStatus(errors.New("connection refused"))
	w.declare("x", first)
	mr, _, err := w.reconcile("set")
	if err == nil || applied(mr).Status == resourcesv1alpha1.ConditionTrue {
		t.Errorf("the object is applied without the status: %v, %v", applied(mr), err)
	}
	w.want("not written", first, "wait-for-state", nil)
	w.breakStatus(nil)
	w.restart()
	w.reconcileOK("set")
	w.want("written later", first, "wait-for-state", "two")

	for name, patch := range map[string]string{
		"changed by others": `{"status":{"state":{"machines":"four","more":1}}}`,
		"removed by others": `{"status":{"state":{"machines":null}}}`,
	} {
		w.extension(first, patch, true)
		before := at(w.object(first), "status", "state", "machines")
		w.declare("x", w.manifest("x", "wait-for-state", name[:7]))
		w.reconcileOK("set")
		w.ask("set")
		w.reconcileOK("set")
		w.want(name, first, "wait-for-state", before)
	}
}

func (w *waiting) breakStatus(with error) {
	w.requests.breakWith(func(request *http.Request) error {
		if with != nil && strings.HasSuffix(request.URL.Path, "/status") {
			return with
		}
		return nil
	})
}
