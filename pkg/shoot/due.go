package shoot

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/maintenance"
	"github.com/trellis-k8s/trellis/pkg/shoot/restoredgarden"
)

const (
	// windowEnd is how long before its end a maintenance window counts as over. An operation that began later would end outside the window.
	windowEnd = 15 * time.Minute
	// seedAgain is how often gardenlet checks a Seed that is not ready.
	seedAgain = 15 * time.Second
)

// decision is whether gardenlet reconciles a Shoot now.
type decision struct {
	run bool
	// why is the reason if run is not set. If failed is set, the Shoot waits for its Seed, which is not ready.
	why    string
	failed bool
	// stopped is set if operations are stopped until a user or operator intervenes. shown is set if extensions must learn this
	// from the Cluster.
	stopped, shown bool
	// again is the time until the next decision. 0 means that only a watch triggers it.
	again time.Duration
}

// decisionInput are the inputs of the decision.
type decisionInput struct {
	shoot *corev1beta1.Shoot
	seed  *corev1beta1.Seed
	// gardenlet is the identity of this gardenlet.
	gardenlet *corev1beta1.Gardener
	config    *gardenletv1alpha1.ShootController
	now       time.Time
}

// operationType returns the operation that is due.
func operationType(shoot *corev1beta1.Shoot) corev1beta1.LastOperationType {
	last := shoot.Status.LastOperation
	switch {
	case shoot.DeletionTimestamp != nil:
		return corev1beta1.LastOperationTypeDelete
	case phaseOf(shoot) == phaseMigrate:
		return corev1beta1.LastOperationTypeMigrate
	case phaseOf(shoot) == phaseRestore:
		return corev1beta1.LastOperationTypeRestore
	case last == nil, last.Type == corev1beta1.LastOperationTypeCreate && last.State != corev1beta1.LastOperationStateSucceeded:
		return corev1beta1.LastOperationTypeCreate
	}
	return corev1beta1.LastOperationTypeReconcile
}

// phaseOf returns the phase of a Shoot for the Seed that is responsible for it: see isOurs. A Shoot whose binding is changed back
// before the move has ended is restored where it is: what exists stays, and what was given up is taken over again. A control plane that
// is not restored yet never leaves: it may not have its data, so its last snapshot would not have them either.
func phaseOf(shoot *corev1beta1.Shoot) phase {
	wanted, current, last := ptr.Deref(shoot.Spec.SeedName, ""), ptr.Deref(shoot.Status.SeedName, ""), shoot.Status.LastOperation
	leaves := wanted != "" && wanted != current
	switch {
	case shoot.DeletionTimestamp != nil, last == nil, current == "":
		return phaseStays
	case last.Type == corev1beta1.LastOperationTypeRestore && last.State != corev1beta1.LastOperationStateSucceeded,
		last.Type == corev1beta1.LastOperationTypeMigrate && (!leaves || last.State == corev1beta1.LastOperationStateSucceeded):
		return phaseRestore
	case leaves && (last.Type == corev1beta1.LastOperationTypeMigrate || mayBegin(shoot)):
		return phaseMigrate
	}
	return phaseStays // until a move begins, it serves here
}

// mayBegin reports whether a control plane may begin to leave its Seed: the destination is ready, the control plane was completely
// created, and it neither falls asleep nor wakes up, so that it is known whether its programs run.
func mayBegin(shoot *corev1beta1.Shoot) bool {
	ready, last := corev1beta1.FindCondition(shoot.Status.Constraints, corev1beta1.ShootReadyForMigration), shoot.Status.LastOperation
	created := last.Type != corev1beta1.LastOperationTypeCreate || last.State == corev1beta1.LastOperationStateSucceeded
	return ready != nil && ready.Status == corev1beta1.ConditionTrue && created && Hibernated(shoot) == shoot.Status.IsHibernated
}

// checkGarden ends the pass of a Shoot that the garden shows in an earlier state than this Seed has already reached. It comes before anything
// that acts on the Shoot.
func (p *pass) checkGarden(ctx context.Context) error {
	r, shoot := p.reconciler, p.shoot
	owner := flow.Owner{Flow: FlowName, UID: shoot.UID, Namespace: shoot.Namespace, Name: shoot.Name}
	emitted, err := flow.LastGeneration(ctx, r.emitter.Reader, owner)
	if err != nil {
		return err
	}
	record, err := r.records.Of(ctx, shoot.UID)
	if err != nil {
		return err
	}
	accepted := shoot.Annotations[constants.AnnotationShootAcceptEarlierState]
	decision := restoredgarden.Decide(restoredgarden.Facts{
		Generation: shoot.Generation, Deleting: shoot.DeletionTimestamp != nil, Accepted: accepted, Emitted: emitted, Record: record,
	})
	if ptr.Deref(decision.Record, restoredgarden.Record{}) != ptr.Deref(record, restoredgarden.Record{}) {
		if err := r.records.Set(ctx, shoot.UID, decision.Record); err != nil {
			return err
		}
	}
	if decision.Answered {
		return r.patch(ctx, shoot, func() { delete(shoot.Annotations, constants.AnnotationShootAcceptEarlierState) })
	}
	if decision.Hold == "" {
		return nil
	}
	p.Over = true
	return p.awaitPerson(ctx, decision.Hold)
}

// decide decides whether the Shoot is reconciled now. If it is not, the pass is over, unless operations are stopped: see
// [pass.compute].
func (p *pass) decide(ctx context.Context) error {
	p.seed = &corev1beta1.Seed{}
	if err := p.garden.Get(ctx, client.ObjectKey{Name: p.options.SeedName}, p.seed); err != nil {
		return fmt.Errorf("read Seed %s: %w", p.options.SeedName, err)
	}
	p.decision = p.inputsOfDecision().decide()
	if p.decision.run {
		return nil
	}
	p.Wake.In(p.decision.again)
	p.Over = !p.decision.stopped || !p.decision.shown && !p.maintains()
	if !p.decision.failed || !isUnfinished(p.shoot) {
		return nil
	}
	p.events.Eventf(p.shoot, nil, corev1.EventTypeWarning, eventSeedNotReady, actionReconcile, "%s", p.decision.why)
	return p.write(ctx, p.shoot, p.waitsForSeed(p.shoot, p.decision.why))
}

// operate starts and completes the rotations for which the Shoot is annotated. It removes the annotation once the status
// contains the request.
func (p *pass) operate(ctx context.Context) error {
	r, shoot := p.reconciler, p.shoot
	if shoot.DeletionTimestamp != nil || shoot.Status.LastOperation == nil || p.decision.stopped {
		return nil
	}
	status := *shoot.Status.DeepCopy()
	var left []string
	status.Credentials, left = operated(shoot, r.options.Clock.Now())
	if err := r.write(ctx, shoot, status); err != nil {
		return err
	}
	value, asked := shoot.Annotations[constants.AnnotationGardenerOperation]
	if rest := strings.Join(left, ";"); !asked || rest == value {
		return nil
	} else if rest != "" {
		return r.patch(ctx, shoot, func() { shoot.Annotations[constants.AnnotationGardenerOperation] = rest })
	}
	return r.patch(ctx, shoot, func() { delete(shoot.Annotations, constants.AnnotationGardenerOperation) })
}

// inputsOfDecision returns the inputs of the decision.
func (p *pass) inputsOfDecision() decisionInput {
	settings := p.options.controller()
	return decisionInput{shoot: p.shoot, seed: p.seed, gardenlet: p.options.Identity, config: &settings, now: p.Wake.Now}
}

// decide returns whether gardenlet reconciles a Shoot now. The first matching rule applies, as in Gardener.
func (l decisionInput) decide() decision {
	last, status := l.shoot.Status.LastOperation, l.shoot.Status
	observed := status.ObservedGeneration == l.shoot.Generation
	switch {
	case isTrue(l.seed.Annotations[constants.AnnotationShootEmergencyStopReconciliations]) && l.shoot.DeletionTimestamp == nil:
		return decision{stopped: true, why: "the Seed stops the reconciliation of all Shoots"}
	case last != nil && last.State == corev1beta1.LastOperationStateFailed && observed:
		return decision{why: "the last operation failed: change the Shoot, or annotate it with gardener.cloud/operation=retry", stopped: true, shown: true}
	case l.ignored():
		return decision{why: "the Shoot is annotated to be ignored", stopped: true, shown: true}
	}
	if why := l.seedNotReady(); why != "" {
		return decision{why: why, failed: true, again: seedAgain}
	}
	if isUnfinished(l.shoot) || !l.confined() {
		return decision{run: true}
	}
	open, next := l.turn()
	return decision{run: open, why: "changes are confined to the maintenance window", again: next.Sub(l.now)}
}

// ignored reports whether the Shoot is annotated to be ignored, and whether the annotation applies: only in namespace
// garden, unless gardenlet's configuration allows it everywhere.
func (l decisionInput) ignored() bool {
	return overwritable(l.shoot, l.config) && isTrue(l.shoot.Annotations[constants.AnnotationShootIgnore]) && l.shoot.DeletionTimestamp == nil
}

// confined reports whether a control plane changes only in its maintenance window.
func (l decisionInput) confined() bool {
	settings := l.shoot.Spec.Maintenance
	return settings != nil && ptr.Deref(
		settings.ConfineSpecUpdateRollout, false,
	) || l.config != nil && ptr.Deref(l.config.ReconcileInMaintenanceOnly, false)
}

// seedNotReady returns why the Seed cannot host control planes, or an empty string. A Seed that is being deleted is used
// until its Shoots are deleted. The deletion of a Shoot needs nothing new of the Seed, and may even be what its health
// waits for.
func (l decisionInput) seedNotReady() string {
	seed := l.seed
	switch {
	case seed.DeletionTimestamp != nil, l.shoot.DeletionTimestamp != nil, phaseOf(l.shoot) == phaseMigrate:
		return ""
	case seed.Status.ObservedGeneration < seed.Generation:
		return fmt.Sprintf("the Seed %s is not ready: its generation %d has not been observed", seed.Name, seed.Generation)
	case seed.Status.Gardener == nil || *seed.Status.Gardener != *l.gardenlet:
		return fmt.Sprintf("the Seed %s is not ready: this gardenlet has not reconciled it", seed.Name)
	}
	for _, wanted := range []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy} {
		status := corev1beta1.ConditionUnknown
		for _, condition := range seed.Status.Conditions {
			if condition.Type == wanted {
				status = condition.Status
			}
		}
		if status != corev1beta1.ConditionTrue {
			return fmt.Sprintf("the Seed %s is not ready: its condition %s is %s", seed.Name, wanted, status)
		}
	}
	return ""
}

// window returns the part of the maintenance window in which operations begin. It is false, with the whole day, if the Shoot
// has no window.
func (l decisionInput) window() (maintenance.Window, bool) {
	window, found := maintenance.OfShoot(l.shoot)
	if !found {
		return window, false
	}
	return window.EndingEarlier(windowEnd), true
}

// turn returns whether a Shoot whose changes are confined to its maintenance window is reconciled now, and when this changes
// next. The turns of Shoots with the same window are spread over it.
func (l decisionInput) turn() (now bool, next time.Time) {
	window, found := l.window()
	if !found {
		return true, l.now
	}
	return window.From(l.shoot.UID).State(l.now)
}

// passAgain returns after how long a Shoot is reconciled again without a change: after its sync period or, if gardenlet reconciles only
// in maintenance windows, at the end of its turn, when the next turn is computed.
func (l decisionInput) passAgain() time.Duration {
	if !ptr.Deref(l.config.ReconcileInMaintenanceOnly, false) {
		return syncPeriod(l.shoot, *l.config)
	}
	if _, found := l.window(); !found {
		return syncPeriod(l.shoot, *l.config)
	}
	_, next := l.turn()
	return next.Sub(l.now)
}

func isTrue(text string) bool {
	value, err := strconv.ParseBool(strings.TrimSpace(text))
	return err == nil && value
}

// controller returns the configuration of the controller of Shoots.
func (o Options) controller() gardenletv1alpha1.ShootController {
	controllers := ptr.Deref(o.Config.Controllers, gardenletv1alpha1.ControllersConfiguration{})
	return ptr.Deref(controllers.Shoot, gardenletv1alpha1.ShootController{})
}

// overwritable reports whether annotations of a Shoot may change when it is reconciled: only in namespace garden, unless
// gardenlet's configuration allows it everywhere.
func overwritable(shoot *corev1beta1.Shoot, config *gardenletv1alpha1.ShootController) bool {
	return shoot.Namespace == constants.GardenNamespace || config != nil && ptr.Deref(config.RespectSyncPeriodOverwrite, false)
}

// syncPeriod returns how long after a reconcile a Shoot is reconciled again without a change. An annotation can make the
// configured period longer, but not shorter.
func syncPeriod(shoot *corev1beta1.Shoot, config gardenletv1alpha1.ShootController) time.Duration {
	period := defaultSyncAfter
	if config.SyncPeriod != nil {
		period = config.SyncPeriod.Duration
	}
	if overwritable(shoot, &config) {
		if wanted, err := time.ParseDuration(shoot.Annotations[constants.AnnotationShootSyncPeriod]); err == nil {
			return max(period, wanted)
		}
	}
	return period
}
