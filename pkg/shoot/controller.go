package shoot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/latest"
	"github.com/trellis-k8s/trellis/pkg/requeue"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/shoot/extensionobjects"
	"github.com/trellis-k8s/trellis/pkg/shoot/extensionwebhooks"
	"github.com/trellis-k8s/trellis/pkg/shoot/restoredgarden"
	"github.com/trellis-k8s/trellis/pkg/shoot/state"
)

// Reasons of Events.
//
// +events:on=Shoot
const (
	eventReconciling  = "Reconciling"       // Normal: an operation begins
	eventReconciled   = "Reconciled"        // Normal: an operation has succeeded
	eventRolloutHeld  = "RolloutHeld"       // Normal: changes of a new version of gardenlet are held, for the reason in the note
	eventSeedNotReady = "SeedNotReady"      // Warning: an operation waits until the Seed is ready
	eventPrepared     = "MigrationPrepared" // Normal: the control plane has left its Seed, and is restored in another one
	eventDeleted      = "Deleted"           // Normal: the control plane is deleted
	eventError        = "ReconcileError"    // Warning: the Shoot could not be reconciled
	eventEarlierState = "GardenRestored"    // Warning: the garden shows an earlier state of the Shoot, which is left alone until a person has decided
)

// Actions of these Events.
const (
	actionReconcile = "Reconcile"
	actionDelete    = "Delete"
	actionMigrate   = "Migrate"
)

// defaultSyncAfter is the default period of a full reconciliation of a Shoot. It sends no requests if nothing has changed.
const defaultSyncAfter = time.Hour

// reconciler runs the flow of the Shoots of a Seed.
type reconciler struct {
	seed     client.Client
	uncached client.Reader
	garden   client.Client
	objects  *gardenobjects.Cache
	caches   *caches
	// domains caches the Secrets of the garden with default domains.
	domains cache.Cache
	// copies reads the metadata of the certificate authorities in the garden.
	copies interface {
		Get(ctx context.Context, user gardenobjects.User, name client.ObjectKey, object client.Object) error
	}
	// extensions caches the reports of extensions about their objects.
	extensions *extensionobjects.Objects
	events     events.EventRecorder
	emitter    *flow.Emitter
	states     *state.Keeper
	ledgers    *flow.Ledgers
	records    *restoredgarden.Records
	rewrites   rotation.Rewriter
	options    Options
	images     images.Vector

	// written are the Shoots as the API server of the garden returned them after the last write. The cache may be older.
	written latest.Store[*corev1beta1.Shoot]

	mu sync.Mutex
	// copied are the last copies in the garden, by the UIDs of Shoots.
	copied map[types.UID]copied
	// rollouts are the revisions of extensions.
	rollouts extensionwebhooks.Rollouts
	// owners are the Shoots, by the namespaces of their control planes.
	owners map[string]types.NamespacedName
	// asked are the times of requests to extensions, by the UIDs of Shoots. The bundles in the cache may not have them yet.
	asked map[types.UID]asked
	// reports are what extensions reported about nodes, by the UIDs of Shoots and the names of bundles.
	reports map[types.UID]map[string]extensionReport
	// unpermitted is since when gardenlet has no rights for Shoots, by their UIDs.
	unpermitted requeue.Since
	// orphans are control planes without a Shoot.
	orphans orphans
	// troubled is since when passes fail only for reasons that pass by themselves.
	troubled requeue.Since
}

// Reconcile makes a plan of a Shoot and emits it. It sends no requests if nothing has to be done.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.garden.Get(ctx, request.NamespacedName, shoot); err != nil {
		if apierrors.IsNotFound(err) {
			r.written.Forget(request.NamespacedName)
			return r.withoutShoot(ctx, request.NamespacedName)
		}
		return reconcile.Result{}, err
	}
	shoot = r.written.Newest(shoot)
	if !r.isOurs(shoot) {
		return r.withoutShoot(ctx, request.NamespacedName)
	}
	if !controllerutil.ContainsFinalizer(shoot, constants.GardenerName) {
		if shoot.DeletionTimestamp != nil {
			return reconcile.Result{}, nil
		}
		// The watch shows the change and triggers the next reconcile.
		return reconcile.Result{}, r.patch(ctx, shoot, func() { controllerutil.AddFinalizer(shoot, constants.GardenerName) })
	}
	if shoot.DeletionTimestamp != nil { // Bastions are deleted first; after a start they may not have been read yet
		if err := r.extensions.Known(ctx, extensionobjects.Bastions()); errors.Is(err, extensionobjects.ErrNotSynced) {
			return reconcile.Result{RequeueAfter: extensionobjects.SyncedAgain}, nil
		}
	}
	p := r.newPass(shoot)
	return p.run(ctx, p.steps())
}

// pass is one reconciliation of a Shoot. Its steps share what they find out.
type pass struct {
	*reconciler
	flow.Pass

	// shoot is the Shoot as last read. Each write of its status replaces it.
	shoot *corev1beta1.Shoot
	// seed and decision are set by decide.
	seed     *corev1beta1.Seed
	decision decision
	// in is set by observe. Only rotate changes it.
	in Inputs
	// busy is set if the clean-up or a rotation has a next step, which also retries what has failed.
	busy bool
}

func (r *reconciler) newPass(shoot *corev1beta1.Shoot) *pass {
	return &pass{reconciler: r, Pass: flow.NewPass(r.options.Clock.Now()), shoot: shoot}
}

// steps returns the steps of a pass in their order.
func (p *pass) steps() []flow.PassStep {
	return []flow.PassStep{
		// 1 What the user asks.
		{Run: p.checkGarden, Needed: true},
		{Run: p.decide, Needed: true},
		{Run: p.operate, Needed: true},
		// 2 What is.
		{Run: p.observe, Needed: true},
		{Run: p.fillNetworks},
		{Run: p.begin, Needed: true},
		// 3 What shall be.
		{Run: p.compute, Needed: true},
		// 4 Do.
		{Run: p.publishIssuer},
		{Run: p.emit},
		{Run: p.ensureEntry},
		{Run: p.moveEntry},
		{Run: p.releaseMachines},
		{Run: p.deleteBastions},
		{Run: p.cleanUp},
		{Run: p.rotate},
		{Run: p.ensureToken},
		{Run: p.copyAuthorities},
		// 5 Report: see run.
	}
}

// run executes the steps of a pass. Whatever fails, it then reports the outcome.
func (p *pass) run(ctx context.Context, steps []flow.PassStep) (reconcile.Result, error) {
	return p.report(ctx, p.Run(ctx, steps))
}

// isOurs reports whether the control plane of a Shoot runs on this Seed. During a migration, the Seed that has the
// control plane is responsible.
func (r *reconciler) isOurs(shoot *corev1beta1.Shoot) bool {
	for _, name := range []*string{shoot.Status.SeedName, shoot.Spec.SeedName} {
		if name != nil && *name != "" {
			return *name == r.options.SeedName
		}
	}
	return false
}

// compute makes the plan. While operations are stopped, extensions learn it first, and the plan contains no operation.
func (p *pass) compute(ctx context.Context) (err error) {
	if !p.decision.stopped {
		p.Plan, err = Plan(p.in)
		return err
	}
	if p.decision.shown {
		if err := p.emitCluster(ctx); err != nil {
			return fmt.Errorf("show the extensions that the Shoot is not reconciled: %w", err)
		}
	}
	if p.Over = !p.maintains(); p.Over {
		return nil
	}
	p.in.Stopped = true
	if p.Plan, err = Plan(p.in); err != nil {
		return err
	}
	live, err := flow.Observe(ctx, p.emitter.Reader, p.in.Owner, p.Plan)
	if err != nil {
		return err
	}
	p.Plan = p.in.withoutOperations(p.Plan, live)
	return nil
}

// emit emits the plan.
func (p *pass) emit(ctx context.Context) error {
	p.Wake.In(p.in.looksAgain())
	return p.Emit(ctx, p.emitter, p.in.Owner, p.in.Now, p.inputsOfDecision().passAgain())
}

// looksAgain returns after how long nodes with old keys are looked for again, 0 for never.
func (in Inputs) looksAgain() time.Duration {
	for _, key := range in.oldKeys() {
		if in.Machines.Left.keeps(key) {
			return leftAgain
		}
	}
	return 0
}
