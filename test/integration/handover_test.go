package integration

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestBinaryHandsOver has a ManagedResource wait for an object that another one has, and lets that one go of it in several
// ways. The heir must notice at once: conflicts are not tried again before the sync period, which is an hour here.
func TestBinaryHandsOver(t *testing.T) {
	f := newFixture(t)
	f.start(noElection + "controllers: {managedResource: {syncPeriod: 1h}}\n")
	// It is rejected for ever, so it is in an inventory and has no origin.
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
			f.eventually("the first has it", func() bool {
				condition := f.condition(first.Name)
				return condition.Status == resourcesv1alpha1.ConditionTrue || strings.Contains(condition.Message, "unknown field")
			})
			f.manage("second-"+test.object, f.configMap(test.object, "of the second"))
			f.eventually("the second notices the conflict", func() bool {
				return strings.Contains(f.condition("second-"+test.object).Message, "belongs to ManagedResource")
			})
			test.release(first)
			f.eventually("the second has it", func() bool {
				live := f.liveConfigMap(test.object)
				return live != nil && live.Data["key"] == "of the second"
			})
		})
	}
}

// TestHandsOverThoughTheAnswerIsLost has a ManagedResource let go of an object with a status whose answer is lost. All that is left
// to do is to give its claim back.
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

// losingAnswers is a client that never hears what became of a status.
type losingAnswers struct{ client.Client }

func (c losingAnswers) Status() client.SubResourceWriter { return losingWriter{c.Client.Status()} }

type losingWriter struct{ client.SubResourceWriter }

func (w losingWriter) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	if err := w.SubResourceWriter.Patch(ctx, obj, patch, options...); err != nil {
		return err
	}
	return context.DeadlineExceeded
}
