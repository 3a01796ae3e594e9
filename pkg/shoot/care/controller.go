package care

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

const (
	fieldManager = "gardenlet"
	// defaultPeriod is how often API servers are asked, and defaultWorkers how many Shoots are looked at at a time, if the configuration does not say.
	defaultPeriod  = time.Minute
	defaultWorkers = 20
)

// Options are those of the controller.
type Options struct {
	SeedName string
	// FlowName is the value of flow.LabelFlow on the ManagedResources of Shoots. Those with PrefixSystem are of the cluster's own components.
	FlowName, PrefixSystem string
	// Required are the names of the ManagedResources that a control plane has to have.
	Required []string
	Config   *gardenletv1alpha1.ShootCareController
	Clock    clock.PassiveClock
	// Healthz asks the API server of a Shoot for its health. It does not ask one that is not expected to answer.
	Healthz func(ctx context.Context, shoot *corev1beta1.Shoot) (asked bool, err error)
}

// care writes the conditions of Shoots.
type care struct {
	garden  client.Client
	emitted flow.IndexedReader
	options Options
}

// AddToManager adds the controller. The caches are that of the garden, which has the Shoots of the Seed, and the one with what flows have emitted.
func AddToManager(mgr manager.Manager, garden cluster.Cluster, of cache.Cache, emitted flow.IndexedReader, options Options) error {
	c := &care{garden: garden.GetClient(), emitted: emitted, options: options}
	workers := defaultWorkers
	if options.Config != nil {
		workers = ptr.Deref(options.Config.ConcurrentSyncs, workers)
	}
	built, err := controller.New("shoot-care", mgr, controller.Options{
		Reconciler: c, MaxConcurrentReconciles: workers, SkipNameValidation: mgr.GetControllerOptions().SkipNameValidation, RecoverPanic: ptr.To(true),
	})
	if err != nil {
		return fmt.Errorf("add the controller of the conditions of Shoots: %w", err)
	}
	own := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetLabels()[flow.LabelFlow] == options.FlowName })
	for _, watched := range []source.Source{
		source.Kind[client.Object](garden.GetCache(), &corev1beta1.Shoot{}, &handler.EnqueueRequestForObject{}, operationChanged()),
		source.Kind[client.Object](of, &resourcesv1alpha1.ManagedResource{}, handler.EnqueueRequestsFromMapFunc(toOwner), own),
	} {
		if err := built.Watch(watched); err != nil {
			return fmt.Errorf("add a watch of the conditions of Shoots: %w", err)
		}
	}
	return nil
}

func toOwner(_ context.Context, object client.Object) []reconcile.Request {
	if owner, known := flow.ParseOwner(object.GetAnnotations()[flow.AnnotationOwner]); known {
		return []reconcile.Request{{NamespacedName: owner}}
	}
	return nil
}

// operationChanged lets changes of a Shoot pass that its conditions depend on.
func operationChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*corev1beta1.Shoot)
		after, is := e.ObjectNew.(*corev1beta1.Shoot)
		if !was || !is {
			return true
		}
		state := func(shoot *corev1beta1.Shoot) string {
			last := ptr.Deref(shoot.Status.LastOperation, corev1beta1.LastOperation{})
			return strings.Join([]string{string(last.Type), string(last.State), fmt.Sprint(shoot.Status.IsHibernated, shoot.Generation, len(shoot.Status.LastErrors) > 0)}, " ")
		}
		return state(before) != state(after)
	}}
}

// Reconcile looks at a Shoot and writes its conditions if they have changed.
func (c *care) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := c.garden.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if ptr.Deref(shoot.Status.SeedName, "") != c.options.SeedName || shoot.Status.TechnicalID == "" {
		return reconcile.Result{}, nil // the flow writes both, and the watch shows that
	}
	observation, err := c.observe(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	conditions, next := observation.Conditions()
	wait := defaultPeriod
	if c.options.Config != nil && c.options.Config.SyncPeriod != nil {
		wait = c.options.Config.SyncPeriod.Duration
	}
	if !next.IsZero() {
		wait = min(wait, max(next.Sub(observation.Now), time.Millisecond))
	}
	result := reconcile.Result{RequeueAfter: wait}
	if equality.Semantic.DeepEqual(conditions, shoot.Status.Conditions) {
		return result, nil
	}
	// Each writer of conditions sends its own ones: they are merged by type.
	before := client.StrategicMergeFrom(shoot.DeepCopy())
	shoot.Status.Conditions = conditions
	if err := c.garden.Status().Patch(ctx, shoot, before, client.FieldOwner(fieldManager)); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("write the conditions of Shoot %s: %w", request, err))
	}
	return result, nil
}

// observe reads what the conditions are computed from. All but the answer of the API server comes from caches.
func (c *care) observe(ctx context.Context, shoot *corev1beta1.Shoot) (Observation, error) {
	observation := Observation{
		Shoot: shoot, Required: c.options.Required, Now: c.options.Clock.Now(), Thresholds: map[corev1beta1.ConditionType]time.Duration{},
		Hibernated: shoot.Status.IsHibernated || shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false),
	}
	if c.options.Config != nil {
		for _, threshold := range c.options.Config.ConditionThresholds {
			observation.Thresholds[corev1beta1.ConditionType(threshold.Type)] = threshold.Duration.Duration
		}
	}
	owner := flow.Owner{Flow: c.options.FlowName, UID: shoot.UID, Namespace: shoot.Namespace, Name: shoot.Name}
	live, err := flow.Observe(ctx, c.emitted, owner, flow.Plan{})
	if err != nil {
		return observation, err
	}
	for key, mr := range live.ManagedResources {
		if strings.HasPrefix(key.Name, c.options.PrefixSystem) && key.Namespace == shoot.Status.TechnicalID {
			observation.System = append(observation.System, *mr)
		} else {
			observation.ControlPlane = append(observation.ControlPlane, *mr)
		}
	}
	if !observation.Hibernated {
		observation.Asked, observation.Error = c.options.Healthz(ctx, shoot)
	}
	return observation.sorted(), nil
}
