package seed

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/latest"
	"github.com/trellis-k8s/trellis/pkg/requeue"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// Reasons of Events.
//
// +events:on=Seed
const (
	eventInUse    = "DeletionRefused"     // Warning: the Seed cannot be deleted yet, because others refer to it
	eventInactive = "NotActive"           // Warning: the Seed requires components that this version does not have
	eventError    = "ReconcileError"      // Warning: the Seed could not be reconciled
	eventKept     = "ResourceManagerKept" // Warning: the Seed is deleted, but its resource-manager is kept because other ManagedResources exist
)

// The actions of these Events.
const (
	actionReconcile = "Reconcile"
	actionDelete    = "Delete"
)

// defaultSyncAfter is the default syncPeriod.
const defaultSyncAfter = time.Minute

// reconciler runs the flow of the only Seed of this gardenlet.
type reconciler struct {
	seed     client.Client
	uncached client.Reader
	// cache contains the objects of the seed that the flow reads.
	cache          cache.Cache
	garden         client.Client
	gardenUncached client.Reader
	objects        *gardenobjects.Cache
	events         events.EventRecorder
	emitter        *flow.Emitter
	secrets        *secrets.Manager
	options        Options
	images         images.Vector
	facts          *seedfacts.Reader

	// unused is the number of unused Secrets.
	unused int
	// written is the Seed as returned by the last write. The cache might not show it yet.
	written latest.Store[*corev1beta1.Seed]
	// troubled is since when passes fail only for reasons that pass by themselves.
	troubled requeue.Since
	// lastRefusal is the text of the last Event about a refused deletion. It prevents duplicate Events.
	lastRefusal string
}

// Reconcile computes a plan and emits it. Each step is a no-op if nothing has to change.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.garden.Get(ctx, request.NamespacedName, seed); err != nil {
		if apierrors.IsNotFound(err) {
			r.objects.Release(r.user())
			r.written.Forget(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	seed = r.written.Newest(seed)
	if !controllerutil.ContainsFinalizer(seed, constants.GardenerName) {
		if seed.DeletionTimestamp != nil {
			return reconcile.Result{}, nil
		}
		// The watch reports the change, and the next pass continues.
		return reconcile.Result{}, r.patch(ctx, seed, func() { controllerutil.AddFinalizer(seed, constants.GardenerName) })
	}
	p := &pass{reconciler: r, Pass: flow.NewPass(r.options.Clock.Now()), seed: seed}
	return p.run(ctx)
}

// pass is one reconciliation of the Seed. Its steps share what they find out.
type pass struct {
	*reconciler
	flow.Pass

	// seed is the Seed as last read or written.
	seed *corev1beta1.Seed
	// in is set by observe.
	in Inputs
}

// run executes the steps of a pass. Whatever fails, the status is written.
func (p *pass) run(ctx context.Context) (reconcile.Result, error) {
	failure := p.Run(ctx, []flow.PassStep{
		// 1 What the user asks.
		{Run: p.operate},
		// 2 What is.
		{Run: p.observe, Needed: true},
		{Run: p.begin, Needed: true},
		// 3 What shall be.
		{Run: p.compute, Needed: true},
		// 4 Do.
		{Run: p.emit},
		{Run: p.ensureBucket},
		{Run: p.cleanUp},
	})
	// 5 Report.
	return p.report(ctx, failure)
}

// compute makes the plan.
func (p *pass) compute(context.Context) (err error) {
	p.Plan, err = Plan(p.in)
	return err
}

// emit emits the plan.
func (p *pass) emit(ctx context.Context) error {
	period := defaultSyncAfter
	if controllers := p.options.Config.Controllers; controllers != nil && controllers.Seed != nil && controllers.Seed.SyncPeriod != nil {
		period = controllers.Seed.SyncPeriod.Duration
	}
	return p.Emit(ctx, p.emitter, p.in.Owner, p.in.Now, period)
}
