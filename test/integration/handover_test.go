package integration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestBinaryHandsOver: a ManagedResource waits for an object of another one, which releases it in several ways. The
// successor must notice at once: conflicts are not retried before the sync period, which is an hour here.
func TestBinaryHandsOver(t *testing.T) {
	f := newFixture(t)
	f.start(noElection + "controllers: {managedResource: {syncPeriod: 1h}}\n")
	// The API server always rejects it, so it is in an inventory but has no origin.
	neverThere := strings.Replace(f.configMap("never-there", "1"), "\ndata:", "\nspec: {}\ndata:", 1)
	for name, test := range map[string]struct {
		object  string
		first   string
		release func(first *resourcesv1alpha1.ManagedResource)
	}{
		"it leaves the manifests": {
			object: "leaves", release: func(first *resourcesv1alpha1.ManagedResource) { f.secret(first.Name, "objects.yaml", "") },
		},
		"its ManagedResource is deleted": {
			object: "deleted", release: func(first *resourcesv1alpha1.ManagedResource) { must(t, f.client.Delete(f.ctx, first)) },
		},
		"its ManagedResource is deleted and keeps its objects": {
			object: "kept", release: func(first *resourcesv1alpha1.ManagedResource) {
				f.change(first, func() { first.Spec.KeepObjects = ptr.To(true) })
				must(t, f.client.Delete(f.ctx, first))
			},
		},
		"it was never there": {
			object: "never-there", first: neverThere,
			release: func(first *resourcesv1alpha1.ManagedResource) { f.secret(first.Name, "objects.yaml", "") },
		},
	} {
		t.Run(name, func(*testing.T) {
			if test.first == "" {
				test.first = f.configMap(test.object, "of the first")
			}
			first := f.manage("first-"+test.object, test.first)
			f.eventually("the first one has it", func() bool {
				condition := f.condition(first.Name)
				return condition.Status == resourcesv1alpha1.ConditionTrue || strings.Contains(condition.Message, "unknown field")
			})
			f.manage("second-"+test.object, f.configMap(test.object, "of the second"))
			f.eventually("the second one notices the conflict", func() bool {
				return strings.Contains(f.condition("second-"+test.object).Message, "belongs to ManagedResource")
			})
			test.release(first)
			f.eventually("the second one has it", func() bool {
				live := f.liveConfigMap(test.object)
				return live != nil && live.Data["key"] == "of the second"
			})
		})
	}
}

// TestKeepsUntilTheNewOwnerHasRecorded moves objects to a ManagedResource that cannot record them. The former owner
// keeps them, also in its inventory, and names the ManagedResource that it waits for. Otherwise it is applied
// normally. Once the new owner has recorded the objects, they are its own.
func TestKeepsUntilTheNewOwnerHasRecorded(t *testing.T) {
	for name, gone := range map[string]bool{"the manifests lose it": false, "the ManagedResource is deleted": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.manage("first", f.configMap("one", "1"), f.configMap("moved", "of the first"))
			f.reconcileOK("first")
			uid := f.liveConfigMap("moved").UID
			second := f.manage("second", f.configMap("moved", "of the second"))
			f.change(second, func() { second.Spec.ServiceAccountName = "does-not-exist" })
			if mr, _, _ := f.reconcile("second"); len(mr.Status.Resources) > 0 {
				t.Fatalf("the second one has recorded %v", mr.Status.Resources)
			}

			says := "ConfigMap/" + f.namespace + "/moved: ManagedResource " + f.namespace + "/second wants it"
			var mr *resourcesv1alpha1.ManagedResource
			if gone {
				f.beginDeletion(f.read("first"))
				f.reconcileUntil("first", "the first one names the ManagedResource that it waits for", func(mr *resourcesv1alpha1.ManagedResource) bool {
					return strings.Contains(applied(mr).Message, says)
				})
				mr = f.read("first")
			} else {
				f.secret("first", "objects.yaml", f.configMap("one", "1"))
				mr = f.reconcileOK("first")
				wantContains(t, applied(mr).Message, "Handing over (1): ", says)
			}
			if held := mr.Status.Resources; !slices.ContainsFunc(held, func(entry resourcesv1alpha1.ObjectReference) bool { return entry.Name == "moved" }) {
				t.Errorf("the inventory of the first one is %v", held)
			}
			f.wantConfigMap("moved", "of the first")

			f.refresh(second, func() { second.Spec.ServiceAccountName = "" })
			f.reconcileOK("second")
			f.reconcileUntil("first", "the first one releases the object", func(mr *resourcesv1alpha1.ManagedResource) bool {
				return mr.Name == "" || len(mr.Status.Resources) == 1 && applied(mr).Message == "All resources are applied."
			})
			f.reconcileOK("second")
			if live := f.wantConfigMap("moved", "of the second"); live.UID != uid {
				t.Errorf("the object was recreated")
			}
		})
	}
}

// TestAppliesWhatAnotherOneHasApplied moves an object to another ManagedResource and back before the first one has
// released it. Both have the same manifest, so only the origin shows that it has to be applied.
func TestAppliesWhatAnotherOneHasApplied(t *testing.T) {
	f := newFixture(t)
	one, two, moved := f.configMap("one", "1"), f.configMap("two", "1"), f.configMap("moved", "1")
	f.manage("first", one, moved)
	f.reconcileOK("first")
	second := f.manage("second", two, moved)
	f.change(second, func() { second.Spec.ServiceAccountName = "does-not-exist" })
	_, _, _ = f.reconcile("second")
	f.secret("first", "objects.yaml", one)
	f.reconcileOK("first") // keeps the object for the second one
	f.refresh(second, func() { second.Spec.ServiceAccountName = "" })
	f.reconcileOK("second")
	origin := func() string { return f.wantConfigMap("moved", "1").Annotations[resourcesv1alpha1.AnnotationOrigin] }
	if got := origin(); got != f.namespace+"/second" {
		t.Fatalf("the origin is %s", got)
	}
	f.secret("first", "objects.yaml", one+"---\n"+moved)
	_, _, _ = f.reconcile("first") // the object belongs to the second one
	f.secret("second", "objects.yaml", two)
	f.reconcileOK("second")
	if mr := f.reconcileOK("first"); origin() != f.namespace+"/first" || len(mr.Status.Resources) != 2 {
		t.Errorf("the origin is %s, the inventory %v", origin(), mr.Status.Resources)
	}
}

// TestClaimsWhatCannotBeReadForNow: the successor cannot be applied yet, and then its Secret cannot be read. It might
// still want the object, so the object is not deleted.
func TestClaimsWhatCannotBeReadForNow(t *testing.T) {
	f := newFixture(t)
	f.manage("first", f.configMap("one", "1"), f.configMap("moved", "of the first"))
	f.reconcileOK("first")
	second := f.manage("second", f.configMap("moved", "of the second"))
	f.change(second, func() { second.Spec.ServiceAccountName = "does-not-exist" })
	_, _, _ = f.reconcile("second")
	f.secret("second", "objects.yaml", "{")
	_, _, _ = f.reconcile("second")
	f.secret("first", "objects.yaml", f.configMap("one", "1"))
	f.reconcileOK("first")
	f.wantConfigMap("moved", "of the first")
	f.secret("second", "objects.yaml", f.configMap("other", "of the second"))
	_, _, _ = f.reconcile("second") // the second one no longer wants the object
	f.reconcileOK("first")
	f.wantNoConfigMap("moved")
}

// TestHandsOverThoughTheAnswerIsLost: a ManagedResource releases an object with a status update whose response is
// lost. All that remains is to release its claim.
func TestHandsOverThoughTheAnswerIsLost(t *testing.T) {
	f := newFixture(t)
	f.manage("first", f.configMap("one", "1"), f.configMap("both", "of the first"))
	f.reconcileOK("first")
	f.manage("second", f.configMap("both", "of the second"))
	if _, _, err := f.reconcile("second"); err != nil {
		t.Fatal(err)
	}
	f.secret("first", "objects.yaml", f.configMap("one", "1"))
	answering := f.reconciler.Source
	f.reconciler.Source = losingAnswers{answering}
	mr, _, err := f.reconcile("first")
	if !errors.Is(err, context.DeadlineExceeded) || len(mr.Status.Resources) != 1 {
		t.Fatalf("the error is %v, the inventory %v", err, mr.Status.Resources)
	}
	f.reconciler.Source = answering
	f.reconcileOK("first")
	f.reconcileOK("second")
	f.wantConfigMap("both", "of the second")
}

// losingAnswers is a client that loses the responses to status updates.
type losingAnswers struct{ client.Client }

func (c losingAnswers) Status() client.SubResourceWriter { return losingWriter{c.Client.Status()} }

type losingWriter struct{ client.SubResourceWriter }

func (w losingWriter) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	if err := w.SubResourceWriter.Patch(ctx, obj, patch, options...); err != nil {
		return err
	}
	return context.DeadlineExceeded
}
