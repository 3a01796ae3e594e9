package shoot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// failing returns a reconciler whose seed refuses a ManagedResource, and which has all that a pass needs.
func failing(t *testing.T, in *Inputs, refused string) (*reconciler, client.Client) {
	t.Helper()
	scheme, bastion := newScheme(t), &extensionsv1alpha1.Bastion{}
	bastion.Namespace, bastion.Name = in.Namespace, "host"
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(bastion).Build()
	seed := interceptor.NewClient(store, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if named, is := object.(interface{ GetName() string }); is && named.GetName() == refused {
				return errors.New("admission webhook denied the request")
			}
			return c.Apply(ctx, object, options...)
		},
	})
	in.Shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateProcessing}
	in.Shoot.Status.ObservedGeneration = in.Shoot.Generation
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(in.Shoot).WithStatusSubresource(in.Shoot).Build()
	r := reporter(t)
	r.options.Clock = clocktesting.NewFakePassiveClock(in.Now)
	r.seed, r.uncached, r.garden, r.copies = seed, seed, garden, shownBy{client: garden}
	r.events, r.ledgers = events.NewFakeRecorder(100), &flow.Ledgers{Cached: seed, Uncached: seed}
	r.copied = map[types.UID]copied{}
	r.emitter = &flow.Emitter{Reader: seed, Uncached: seed, Writer: seed, FieldManager: fieldManager, Rules: flow.Rules{Scheme: scheme, Version: "v1"}}
	return r, garden
}

// emitOnce executes the steps of a pass from compute on, the first that follows the observation.
func emitOnce(t *testing.T, r *reconciler, in Inputs) (reconcile.Result, error) {
	t.Helper()
	p := r.newPass(in.Shoot)
	p.in = in
	return p.run(t.Context(), p.steps()[6:])
}

// TestAFailedBundleDoesNotEndThePass makes the seed refuse one bundle. The other steps of the pass are executed, and the status
// reports the error together with the progress.
func TestAFailedBundleDoesNotEndThePass(t *testing.T) {
	in := known(t, func(in *Inputs) { in.Bastions = []Bastion{{Name: "host"}} })
	r, garden := failing(t, &in, bundleAccess)
	_, err := emitOnce(t, r, in)
	if err == nil || !errors.As(err, &reportedError{}) {
		t.Errorf("the error is %v", err)
	}
	copied := &corev1beta1.InternalSecret{}
	if err := garden.Get(t.Context(), client.ObjectKey{Namespace: "garden-dev", Name: "one.ca-client"}, copied); err != nil {
		t.Errorf("the authority was not copied: %v", err)
	}
	bastion := &extensionsv1alpha1.Bastion{}
	if err := r.seed.Get(t.Context(), client.ObjectKey{Namespace: in.Namespace, Name: "host"}, bastion); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the Bastion was not deleted: %v", err)
	}
	last := in.Shoot.Status.LastOperation
	if last.State != corev1beta1.LastOperationStateError || !strings.Contains(last.Description, "denied the request") {
		t.Errorf("the status is %+v", last)
	}
	errs := in.Shoot.Status.LastErrors
	if len(errs) == 0 {
		t.Fatal("there are no last errors")
	}
	if own := errs[len(errs)-1]; own.TaskID != nil || !strings.Contains(own.Description, "denied the request") || own.LastUpdateTime == nil {
		t.Errorf("the last errors are %+v", errs)
	}
	// The same failure again changes nothing in the status.
	before := in.Shoot.ResourceVersion
	if _, err := emitOnce(t, r, in); err == nil || in.Shoot.ResourceVersion != before {
		t.Errorf("the status was written again: %+v, %v", in.Shoot.Status.LastOperation, err)
	}
}

// TestSeveralStepsFail checks that a status names all failed steps.
func TestSeveralStepsFail(t *testing.T) {
	in := known(t)
	r, _ := failing(t, &in, bundleAccess)
	r.garden = interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(in.Shoot).WithStatusSubresource(in.Shoot).Build(), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("exceeded quota")
		},
	})
	_, err := emitOnce(t, r, in)
	for _, want := range []string{"denied the request", "exceeded quota"} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(in.Shoot.Status.LastOperation.Description, want) {
			t.Errorf("%q is missing: %v; %+v", want, err, in.Shoot.Status.LastOperation)
		}
	}
}

// TestFailuresThatPass checks when failures that pass by themselves are errors of a Shoot: once they have lasted for [requeue.TransientFor]. Until
// then the operation continues and says what it waits for, and there is no Event.
func TestFailuresThatPass(t *testing.T) {
	slow := fmt.Errorf("read Secret shoot--dev--one/ca: %w", context.DeadlineExceeded)
	for _, emitted := range []bool{false, true} {
		in, recorder := known(t), events.NewFakeRecorder(10)
		r, _ := failing(t, &in, "")
		r.events = recorder
		for _, after := range []time.Duration{0, requeue.TransientFor - time.Second, requeue.TransientFor} {
			p := r.newPass(in.Shoot)
			p.in, p.Wake.Now = in, in.Now.Add(after)
			if emitted {
				p.Result.Live.ManagedResources = map[flow.Key]*resourcesv1alpha1.ManagedResource{}
			}
			_, err := p.report(t.Context(), slow)
			last, passes := in.Shoot.Status.LastOperation, after < requeue.TransientFor
			if !errors.Is(err, context.DeadlineExceeded) || (last.State == corev1beta1.LastOperationStateProcessing) != passes || (len(recorder.Events) == 0) != passes {
				t.Errorf("emitted: %t, after %s: the operation is %+v, %d Events, error %v", emitted, after, last, len(recorder.Events), err)
			}
			if !strings.Contains(strings.ToLower(last.Description), "read secret shoot--dev--one/ca") {
				t.Errorf("emitted: %t, after %s: the status does not say why: %s", emitted, after, last.Description)
			}
		}
	}
}

// TestUnknownTasks checks that a task that nothing executes is not recorded as done.
func TestUnknownTasks(t *testing.T) {
	in := up(t)
	in.Ledger = flow.NewLedger(in.ledgerKey(), nil)
	r, _ := failing(t, &in, "")
	for _, name := range []string{"rotate-workers", "distribute-", "distribute-workers"} {
		result := flow.Result{Plan: flow.Plan{Tasks: []flow.Task{{Name: name, Value: "1"}}}}
		if outcome, err := r.step(&in, &result).Run(t.Context()); err == nil || outcome.Done || in.Ledger.Has(name, "1") {
			t.Errorf("%s: %+v, %v", name, outcome, err)
		}
	}
}
