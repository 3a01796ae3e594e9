package care

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/readiness"
	"github.com/trellis-k8s/trellis/pkg/requeue"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// Options configure the controllers.
type Options struct {
	SeedName string
	// Thresholds by condition type.
	Thresholds []gardenletv1alpha1.ConditionThreshold
	Clock      clock.PassiveClock
}

// Namespaces returns the namespaces with the ManagedResources of system components.
func Namespaces() []string {
	return []string{constants.GardenNamespace, constants.IstioSystemNamespace}
}

// conditions writes the conditions of the Seed.
type conditions struct {
	garden  client.Client
	seed    client.Reader
	options Options
}

// AddToManager adds the controllers. The cache of the seed cluster must contain the ManagedResources of [Namespaces]
// and, reduced by [stalepods.Reduce], all Pods.
func AddToManager(mgr manager.Manager, garden cluster.Cluster, seed cache.Cache, options Options) error {
	c := &conditions{garden: garden.GetClient(), seed: seed, options: options}
	own := []reconcile.Request{{NamespacedName: types.NamespacedName{Name: options.SeedName}}}
	toSeed := func(context.Context, *resourcesv1alpha1.ManagedResource) []reconcile.Request { return own }
	ofShoot := func(context.Context, *corev1beta1.Shoot) []reconcile.Request { return own }
	_, err := watches.Controller{Name: "seed-care", Reconciler: c, Workers: 1}.AddTo(mgr,
		source.Kind(garden.GetCache(), &corev1beta1.Seed{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.Seed]{}, seedChanged(options.SeedName)),
		source.Kind(seed, &resourcesv1alpha1.ManagedResource{}, handler.TypedEnqueueRequestsFromMapFunc(toSeed), componentChanged()),
		source.Kind(garden.GetCache(), &corev1beta1.Shoot{}, handler.TypedEnqueueRequestsFromMapFunc(ofShoot), backupChanged()),
	)
	if err != nil {
		return err
	}
	return addStalePods(mgr, seed, options.Clock)
}

// seedChanged passes the creation of the Seed, and updates that complete its last operation, change the emergency stop
// annotation, change its conditions, or add or remove its backup.
func seedChanged(name string) predicate.TypedPredicate[*corev1beta1.Seed] {
	succeeded := func(seed *corev1beta1.Seed) bool {
		return seed.Status.LastOperation != nil && seed.Status.LastOperation.State == corev1beta1.LastOperationStateSucceeded
	}
	return predicate.TypedFuncs[*corev1beta1.Seed]{
		CreateFunc: func(e event.TypedCreateEvent[*corev1beta1.Seed]) bool { return e.Object.Name == name },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Seed]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return after.Name == name && (!succeeded(before) && succeeded(after) || stopped(before) != stopped(after) ||
				(before.Spec.Backup == nil) != (after.Spec.Backup == nil) ||
				!equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions))
		},
		DeleteFunc: func(event.TypedDeleteEvent[*corev1beta1.Seed]) bool { return false },
	}
}

// componentChanged drops events of ManagedResources that are not system components, and updates that cannot change the
// readiness of one.
func componentChanged() predicate.TypedPredicate[*resourcesv1alpha1.ManagedResource] {
	counts := readiness.IsSeedComponent
	changed := func(e event.TypedUpdateEvent[*resourcesv1alpha1.ManagedResource]) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return counts(before) != counts(after) || counts(after) && (before.Generation != after.Generation ||
			before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
			!equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions))
	}
	return predicate.TypedFuncs[*resourcesv1alpha1.ManagedResource]{
		CreateFunc: func(e event.TypedCreateEvent[*resourcesv1alpha1.ManagedResource]) bool { return counts(e.Object) },
		UpdateFunc: changed,
		DeleteFunc: func(e event.TypedDeleteEvent[*resourcesv1alpha1.ManagedResource]) bool { return counts(e.Object) },
	}
}

// backupChanged passes Shoots whose backups begin or end to fail.
func backupChanged() predicate.TypedPredicate[*corev1beta1.Shoot] {
	return predicate.TypedFuncs[*corev1beta1.Shoot]{
		CreateFunc: func(e event.TypedCreateEvent[*corev1beta1.Shoot]) bool { return backupFails(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Shoot]) bool {
			return backupFails(e.ObjectOld) != backupFails(e.ObjectNew)
		},
		DeleteFunc: func(e event.TypedDeleteEvent[*corev1beta1.Shoot]) bool { return backupFails(e.Object) },
	}
}

// stopped reports whether a Seed requests the emergency stop.
func stopped(seed *corev1beta1.Seed) bool {
	asked, err := strconv.ParseBool(seed.Annotations[constants.AnnotationShootEmergencyStopReconciliations])
	return err == nil && asked
}

// Reconcile computes the conditions and writes them if they have changed.
func (c *conditions) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var seed corev1beta1.Seed
	if err := c.garden.Get(ctx, request.NamespacedName, &seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	o := observation{seed: &seed, now: c.options.Clock.Now(), threshold: c.threshold(corev1beta1.SeedSystemComponentsHealthy)}
	for _, namespace := range Namespaces() {
		var list resourcesv1alpha1.ManagedResourceList
		if err := c.seed.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return reconcile.Result{}, fmt.Errorf("list the ManagedResources in namespace %s: %w", namespace, err)
		}
		other := func(mr resourcesv1alpha1.ManagedResource) bool { return !readiness.IsSeedComponent(&mr) }
		o.components = append(o.components, slices.DeleteFunc(list.Items, other)...)
	}
	if seed.Spec.Backup != nil {
		var shoots corev1beta1.ShootList
		if err := c.garden.List(ctx, &shoots); err != nil {
			return reconcile.Result{}, fmt.Errorf("list the Shoots of Seed %s: %w", seed.Name, err)
		}
		o.shoots = shoots.Items
	}
	slices.SortFunc(o.components, func(a, b resourcesv1alpha1.ManagedResource) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	healthy, next := o.systemComponents()
	if later := readiness.Delay(corev1beta1.FindCondition(seed.Status.Conditions, healthy.Type), healthy, next, o.now); later > 0 {
		return reconcile.Result{RequeueAfter: later}, nil
	}
	wanted := corev1beta1.SetCondition(seed.Status.Conditions, healthy)
	wanted = whilePresent(wanted, corev1beta1.SeedEmergencyStopShootReconciliations, o.emergencyStop(stopped(&seed)))
	wanted = whilePresent(wanted, corev1beta1.SeedBackupReady, o.backup())
	if !equality.Semantic.DeepEqual(wanted, seed.Status.Conditions) {
		// Conditions are merged by type, so that each writer sends only its own ones.
		before := client.StrategicMergeFrom(seed.DeepCopy())
		seed.Status.Conditions = wanted
		if err := c.garden.Status().Patch(ctx, &seed, before); err != nil {
			return reconcile.Result{}, fmt.Errorf("write the conditions of Seed %s: %w", seed.Name, err)
		}
	}
	return requeue.At(next, o.now), nil
}

// whilePresent sets a condition, or removes it if there is none.
func whilePresent(all []corev1beta1.Condition, kind corev1beta1.ConditionType, condition *corev1beta1.Condition) []corev1beta1.Condition {
	if condition == nil {
		return corev1beta1.RemoveCondition(all, kind)
	}
	return corev1beta1.SetCondition(all, *condition)
}

func (c *conditions) threshold(kind corev1beta1.ConditionType) time.Duration {
	return readiness.Threshold(c.options.Thresholds, kind)
}
