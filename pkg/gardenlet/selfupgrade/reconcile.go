package selfupgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/gardenletdeployer"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// fieldManager is the field manager of all writes.
const fieldManager client.FieldOwner = "gardenlet"

// Reasons of Events.
//
// +events:on=Gardenlet
const (
	eventReconciled = "Reconciled"     // Normal: a revision of the gardenlet is being applied
	eventFailed     = "ReconcileError" // Warning: the gardenlet could not be upgraded
)

const actionReconcile = "Reconcile"

// Options are the options of the controller.
type Options struct {
	// SeedName is the name of the Seed. Version is that of this program. KubeVersion returns that of the seed.
	SeedName, Version string
	KubeVersion       func(context.Context) (string, error)
	// Config is the configuration of this gardenlet.
	Config   *gardenletv1alpha1.GardenletConfiguration
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Issuer issues credentials for the first certificate of a gardenlet.
	Issuer gardenletdeployer.Issuer
	// Pull pulls a chart; nil for one from a registry.
	Pull func(ctx context.Context, from *gardencorev1.OCIRepository, credentials, authority *corev1.Secret) ([]byte, error)
}

// reconciler upgrades the gardenlet in which it runs.
type reconciler struct {
	Options

	// garden reads from the cache of the garden. objects reads single objects.
	garden  client.Client
	objects *gardenobjects.Cache
	// seed reads from and writes to the API server of the seed.
	seed    client.Client
	emitter *flow.Emitter
	puller  gardenletdeployer.Puller
}

// Reconcile upgrades the gardenlet if its Gardenlet has changed. Without a Gardenlet, nothing happens.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	gardenlet := &v1alpha1.Gardenlet{}
	if err := r.garden.Get(ctx, request.NamespacedName, gardenlet); err != nil {
		r.objects.Release(userOf(r.SeedName))
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	seed := &corev1beta1.Seed{}
	if err := r.garden.Get(ctx, client.ObjectKey{Name: r.SeedName}, seed); err != nil {
		return reconcile.Result{}, fmt.Errorf("read Seed %s: %w", r.SeedName, err)
	}
	if gardenlet.DeletionTimestamp != nil || seed.DeletionTimestamp != nil {
		return reconcile.Result{}, r.giveUp(ctx, gardenlet, seed)
	}
	found, result, err := r.upgrade(ctx, gardenlet, seed)
	if err != nil {
		found = failed(err.Error())
		r.Recorder.Eventf(gardenlet, nil, corev1.EventTypeWarning, eventFailed, actionReconcile, "%s", found.message)
	}
	if len(result.Written) > 0 {
		r.Recorder.Eventf(gardenlet, nil, corev1.EventTypeNormal, eventReconciled, actionReconcile, "The gardenlet of %s is being applied", ChartOf(gardenlet))
	}
	next := requeue.Earlier(r.Clock.Now().Add(r.Config.Controllers.Gardenlet.SyncPeriod.Duration), result.Plan.NextAt(r.Clock.Now()))
	return requeue.At(next, r.Clock.Now()), errors.Join(err, r.report(ctx, gardenlet, found))
}

// giveUp removes the ManagedResource while the Seed is being deleted, because the resource-manager is deleted with the Seed. Its objects stay.
func (r *reconciler) giveUp(ctx context.Context, gardenlet *v1alpha1.Gardenlet, seed *corev1beta1.Seed) error {
	if seed.DeletionTimestamp == nil {
		return nil
	}
	_, err := r.emitter.Emit(ctx, ownerOf(gardenlet), givingUp())
	return err
}

// upgrade emits the objects of the chart.
func (r *reconciler) upgrade(ctx context.Context, gardenlet *v1alpha1.Gardenlet, seed *corev1beta1.Seed) (finding, flow.Result, error) {
	readAll := r.objects.Begin(userOf(r.SeedName))
	chart, err := r.puller.Chart(ctx, gardenlet)
	if err != nil {
		return finding{}, flow.Result{}, fmt.Errorf("pull the chart of the gardenlet: %w", err)
	}
	readAll()
	kubeVersion, err := r.KubeVersion(ctx)
	if err != nil {
		return finding{}, flow.Result{}, fmt.Errorf("read the version of the seed: %w", err)
	}
	objects, err := gardenletdeployer.InputsOf(gardenlet).Objects(ctx, chart, kubeVersion)
	if err != nil {
		return finding{}, flow.Result{}, err
	}
	target := gardenletdeployer.Target{Client: r.seed, Namespace: constants.GardenNamespace, FieldManager: fieldManager}
	step, err := gardenletdeployer.Ensure(ctx, gardenletdeployer.Object{
		Kind: gardenletdeployer.Gardenlet, Namespace: gardenlet.Namespace, Name: gardenlet.Name, Annotations: gardenlet.Annotations,
		Bootstrap: v1alpha1.BootstrapToken,
	}, graph.MayBootstrap(graph.RegistrationOf(seed), gardenlet.Annotations, r.Clock.Now()), r.Issuer, target, r.annotate(gardenlet))
	if err != nil {
		return finding{}, flow.Result{}, err
	}
	plan := planFor(objects.Managed, step.Missing)
	wait, err := r.deployedByOperator(ctx, gardenlet.Name)
	if err != nil {
		return finding{}, flow.Result{}, err
	}
	if wait != "" {
		plan = planFor(objects.Managed, wait)
		plan.Next = r.Clock.Now().Add(operatorAgain)
	}
	result, err := r.emitter.Emit(ctx, ownerOf(gardenlet), plan)
	if err != nil {
		return finding{}, flow.Result{}, err
	}
	return reconciled(result, ChartOf(gardenlet), cmp.Or(wait, step.Missing)), result, nil
}

// deployedByOperator returns why the gardenlet does not upgrade itself yet: the ManagedResource of its first deployment is still there.
func (r *reconciler) deployedByOperator(ctx context.Context, seed string) (wait string, err error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	key := client.ObjectKey{Namespace: constants.GardenNamespace, Name: gardenletdeployer.RuntimeName(seed)}
	if err := r.seed.Get(ctx, key, mr); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return fmt.Sprintf("the operator has not given up ManagedResource %s yet", key), nil
}

// operatorAgain is how long to wait for the operator before the next attempt.
const operatorAgain = 10 * time.Second

// annotate changes annotations of the Gardenlet. An empty value removes one.
func (r *reconciler) annotate(gardenlet *v1alpha1.Gardenlet) func(context.Context, map[string]string) error {
	return func(ctx context.Context, values map[string]string) error {
		before := client.MergeFromWithOptions(gardenlet.DeepCopy(), client.MergeFromWithOptimisticLock{})
		gardenlet.Annotations = gardenletdeployer.Annotated(gardenlet.Annotations, values)
		if err := r.garden.Patch(ctx, gardenlet, before, fieldManager); err != nil {
			return fmt.Errorf("annotate Gardenlet %s: %w", gardenlet.Name, err)
		}
		return nil
	}
}

// report writes the condition if it has changed.
func (r *reconciler) report(ctx context.Context, gardenlet *v1alpha1.Gardenlet, found finding) error {
	status := gardenlet.Status.DeepCopy()
	status.ObservedGeneration = gardenlet.Generation
	condition := corev1beta1.Condition{Type: v1alpha1.GardenletReconciled, Status: found.status, Reason: found.reason, Message: found.message}
	before := corev1beta1.FindCondition(status.Conditions, condition.Type)
	status.Conditions = corev1beta1.SetCondition(status.Conditions, corev1beta1.KeepTimes(before, condition, r.Clock.Now()))
	if equality.Semantic.DeepEqual(*status, gardenlet.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(gardenlet.DeepCopy(), client.MergeFromWithOptimisticLock{}) // the operator writes another condition
	gardenlet.Status = *status
	if err := client.IgnoreNotFound(r.garden.Status().Patch(ctx, gardenlet, patch, fieldManager)); err != nil {
		return fmt.Errorf("write the status of Gardenlet %s: %w", gardenlet.Name, err)
	}
	return nil
}
