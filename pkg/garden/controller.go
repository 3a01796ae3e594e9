package garden

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/latest"
	"github.com/trellis-k8s/trellis/pkg/requeue"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// Reasons of Events.
//
// +events:on=Garden
const (
	eventInactive = "NotActive"           // Warning: the Garden requires components that this version does not have
	eventInUse    = "DeletionRefused"     // Warning: the Garden cannot be deleted yet, because objects of the virtual garden need it
	eventError    = "ReconcileError"      // Warning: the Garden could not be reconciled
	eventKept     = "ResourceManagerKept" // Warning: the Garden is deleted, but its resource-manager is kept because other ManagedResources exist
	eventIgnored  = "SecondGarden"        // Warning: another Garden exists, and only the oldest one is reconciled
)

// The actions of these Events.
const (
	actionReconcile = "Reconcile"
	actionDelete    = "Delete"
)

// Finalizer of Gardens.
const Finalizer = "gardener.cloud/operator"

// reconciler runs the flow of the Garden.
type reconciler struct {
	runtime  client.Client
	uncached client.Reader
	caches   *caches
	events   events.EventRecorder
	emitter  *flow.Emitter
	secrets  *secrets.Manager
	options  Options
	images   images.Vector
	ledgers  *flow.Ledgers
	rewrites rotation.Rewriter
	facts    *seedfacts.Reader

	// unused is the number of unused Secrets.
	unused int
	// asked are the Seeds that the current task has annotated.
	asked asked
	// recorded is set once the ledger has the entry that the API of the garden was deployed.
	recorded bool
	// written is the Garden as returned by the last write. The cache might not show it yet.
	written latest.Store[*operatorv1alpha1.Garden]
	// troubled is since when passes fail only for reasons that pass by themselves.
	troubled requeue.Since
	// lastRefusal is the text of the last Event about a refused deletion. It prevents duplicate Events.
	lastRefusal string
}

// Reconcile computes a plan and emits it. Each step is a no-op if nothing has to change.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	garden := &operatorv1alpha1.Garden{}
	if err := r.runtime.Get(ctx, request.NamespacedName, garden); err != nil {
		if apierrors.IsNotFound(err) {
			r.written.Forget(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	garden = r.written.Newest(garden)
	if second, err := r.isSecond(ctx, garden); err != nil || second {
		return reconcile.Result{}, err
	}
	if !controllerutil.ContainsFinalizer(garden, Finalizer) {
		if garden.DeletionTimestamp != nil {
			return reconcile.Result{}, nil
		}
		// The watch reports the change, and the next pass continues.
		return reconcile.Result{}, r.patch(ctx, garden, func() { controllerutil.AddFinalizer(garden, Finalizer) })
	}
	p := &pass{reconciler: r, Pass: flow.NewPass(r.options.Clock.Now()), garden: garden}
	return p.run(ctx)
}

// isSecond reports whether an older Garden exists. The webhook prevents this, unless it was not registered yet.
func (r *reconciler) isSecond(ctx context.Context, garden *operatorv1alpha1.Garden) (bool, error) {
	var list operatorv1alpha1.GardenList
	if err := r.runtime.List(ctx, &list); err != nil {
		return false, err
	}
	for i := range list.Items {
		other := r.written.Newest(&list.Items[i])
		if goesFirst(other, garden) {
			r.events.Eventf(garden, nil, "Warning", eventIgnored, actionReconcile, "Garden %s is older, and only one is reconciled: delete this one", other.Name)
			return true, nil
		}
	}
	return false, nil
}

// goesFirst reports whether another Garden is reconciled instead of this one: one that has the finalizer, or the older one of two that have not.
func goesFirst(other, garden *operatorv1alpha1.Garden) bool {
	if other.UID == garden.UID || controllerutil.ContainsFinalizer(garden, Finalizer) {
		return false
	}
	return controllerutil.ContainsFinalizer(other, Finalizer) || olderThan(other, garden)
}

func olderThan(a, b *operatorv1alpha1.Garden) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.UID < b.UID
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// pass is one reconciliation of the Garden. Its steps share what they find out.
type pass struct {
	*reconciler
	flow.Pass

	// garden is the Garden as last read or written.
	garden *operatorv1alpha1.Garden
	// in is set by observe.
	in Inputs
}

// run executes the steps of a pass. Whatever fails, the status is written.
func (p *pass) run(ctx context.Context) (reconcile.Result, error) {
	failure := p.Run(ctx, []flow.PassStep{
		// 1 What is, and what the annotation requests.
		{Run: p.operate, Needed: true},
		{Run: p.observe, Needed: true},
		{Run: p.begin, Needed: true},
		// 2 What shall be.
		{Run: p.compute, Needed: true},
		// 3 Do.
		{Run: p.record, Needed: true},
		{Run: p.emit},
		{Run: p.ensureToken},
		{Run: p.rotate},
		{Run: p.cleanUp},
	})
	// 4 Report.
	return p.report(ctx, failure)
}

// compute makes the plan.
func (p *pass) compute(context.Context) (err error) {
	p.Plan, err = Plan(p.in) //nolint:contextcheck // rendering a chart needs no context
	return err
}

// emit emits the plan.
func (p *pass) emit(ctx context.Context) error {
	return p.Emit(ctx, p.emitter, p.in.Owner, p.in.Now, p.options.Config.Controllers.Garden.SyncPeriod.Duration)
}

// cleanUp deletes Secrets that no component uses any more.
func (p *pass) cleanUp(ctx context.Context) error {
	r, in, result := p.reconciler, p.in, p.Result
	if in.Deleting || r.unused == 0 || in.moves() || len(result.Plan.Tasks) > 0 {
		return nil
	}
	unsettled, err := r.unsettled(ctx, in, result)
	if err != nil || len(unsettled) > 0 {
		return err
	}
	referred, err := secrets.ReferredIn(ctx, r.uncached, in.Namespace, result.Plan.Objects())
	if err != nil {
		return err
	}
	return r.secrets.CleanUp(ctx, in.wantedSecrets(), unsettled, referred)
}
