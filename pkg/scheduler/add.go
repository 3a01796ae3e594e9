// Package scheduler assigns Shoots to Seeds. Package decision decides; this package reads, counts, writes, and decides again when a fact has changed on
// which a refusal depends. It does not retry by time, except after failed requests.
package scheduler

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/requeue"
	"github.com/trellis-k8s/trellis/pkg/scheduler/decision"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

const name = "shoot"

// Options are the settings of the scheduler.
type Options struct {
	// Recorder writes the Events.
	Recorder events.EventRecorder
	// Syncs is the number of Shoots that are scheduled concurrently.
	Syncs int
	// Strategy is the configured strategy.
	Strategy decision.Strategy
}

// CacheOptions returns what the cache of the manager has to contain of each kind.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {
			Namespaces: map[string]cache.Config{constants.GardenNamespace: {}},
			Label:      labels.SelectorFromSet(labels.Set{constants.LabelSchedulingPurpose: decision.LabelValueRegionConfig}),
		},
		&corev1beta1.Shoot{}:        {Transform: reduceShoot},
		&corev1beta1.CloudProfile{}: {Transform: reduceProfile},
	}
}

// reduceShoot drops what the scheduler does not read of a Shoot. Of Shoots with a Seed, it needs only the Seed.
func reduceShoot(object any) (any, error) {
	shoot, is := object.(*corev1beta1.Shoot)
	if !is {
		return object, nil
	}
	shoot.ManagedFields, shoot.Annotations = nil, nil
	status := corev1beta1.ShootStatus{SeedName: shoot.Status.SeedName}
	if shoot.Spec.SeedName != nil {
		shoot.Spec = corev1beta1.ShootSpec{SeedName: shoot.Spec.SeedName}
	} else {
		status.LastOperation, status.Networking = shoot.Status.LastOperation, shoot.Status.Networking
	}
	shoot.Status = status
	return shoot, nil
}

// reduceProfile drops what the scheduler does not read of a CloudProfile.
func reduceProfile(object any) (any, error) {
	if profile, is := object.(*corev1beta1.CloudProfile); is {
		profile.ManagedFields = nil
		profile.Spec = corev1beta1.CloudProfileSpec{Type: profile.Spec.Type, SeedSelector: profile.Spec.SeedSelector}
	}
	return object, nil
}

// AddToManager adds the scheduler to a manager of the garden, whose cache has [CacheOptions].
func AddToManager(mgr manager.Manager, options Options) error {
	r := &reconciler{
		cached: mgr.GetCache(), garden: server{mgr.GetClient(), mgr.GetAPIReader()}, recorder: options.Recorder, clock: clock.RealClock{},
		strategy: options.Strategy, ledger: newLedger(), waiting: newWaiting(),
	}
	register(r.waiting)
	in := mgr.GetCache()
	_, err := watches.Controller{Name: name, Reconciler: r, Workers: options.Syncs, RateLimiter: requeue.Backoff()}.AddTo(mgr,
		source.Func(func(_ context.Context, started queue) error { r.queue.Store(&started); return nil }),
		source.Kind(in, &corev1beta1.Shoot{}, r.shoots()),
		source.Kind(in, &corev1beta1.Seed{}, wakes(r, seedsDiffer, func(*corev1beta1.Seed) matcher { return anything })),
		source.Kind(in, &corev1beta1.CloudProfile{}, wakes(r, profilesDiffer, func(*corev1beta1.CloudProfile) matcher { return anything })),
		source.Kind(in, &corev1beta1.NamespacedCloudProfile{}, wakes(r, never[*corev1beta1.NamespacedCloudProfile], inNamespace)),
		source.Kind(in, &corev1beta1.Project{}, wakes(r, projectsDiffer, ofProject)),
		source.Kind(in, &corev1.ConfigMap{}, wakes(r, configsDiffer, func(*corev1.ConfigMap) matcher { return anything })),
	)
	return err
}

// matcher selects waiting Shoots.
type matcher = func(types.NamespacedName, refusal) bool

// wakes returns a handler that decides again on the waiting Shoots that match when an object appears, disappears, or differs.
func wakes[T client.Object](r *reconciler, differ func(before, after T) bool, match func(T) matcher) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], _ queue) { r.wake(match(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], _ queue) {
			if differ(e.ObjectOld, e.ObjectNew) {
				r.wake(match(e.ObjectNew))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], _ queue) { r.wake(match(e.Object)) },
	}
}

// shoots returns the handler for Shoots: it counts them, wakes others when one has left a Seed, and decides on those without a Seed.
func (r *reconciler) shoots() handler.TypedEventHandler[*corev1beta1.Shoot, reconcile.Request] {
	seen := func(shoot *corev1beta1.Shoot, decide bool, queue queue) {
		r.wake(lacksPlace(r.ledger.observe(shoot)))
		if decide {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)})
		}
	}
	return handler.TypedFuncs[*corev1beta1.Shoot, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1beta1.Shoot], queue queue) {
			seen(e.Object, responsible(e.Object), queue)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1beta1.Shoot], queue queue) {
			before, after := e.ObjectOld, e.ObjectNew
			if before.UID != after.UID {
				r.wake(lacksPlace(r.ledger.forget(before.UID)))
			}
			changed := before.UID != after.UID || before.Generation != after.Generation || responsible(before) != responsible(after) ||
				!equality.Semantic.DeepEqual(before.Status.Networking, after.Status.Networking)
			seen(after, changed && (responsible(before) || responsible(after)), queue)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1beta1.Shoot], _ queue) {
			r.waiting.remove(client.ObjectKeyFromObject(e.Object))
			r.wake(lacksPlace(r.ledger.forget(e.Object.UID)))
		},
	}
}

// facts returns a Seed with only the fields on which decisions depend.
func facts(seed *corev1beta1.Seed) *corev1beta1.Seed {
	reduced := &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Labels: seed.Labels, UID: seed.UID},
		Spec: corev1beta1.SeedSpec{
			Networks: seed.Spec.Networks, Provider: seed.Spec.Provider, Taints: seed.Spec.Taints, AccessRestrictions: seed.Spec.AccessRestrictions,
			DNS: corev1beta1.SeedDNS{Defaults: seed.Spec.DNS.Defaults}, Settings: &corev1beta1.SeedSettings{},
		},
		Status: corev1beta1.SeedStatus{Allocatable: seed.Status.Allocatable},
	}
	if seed.DeletionTimestamp != nil {
		reduced.DeletionTimestamp = &metav1.Time{}
	}
	if decision.Stopped(seed) {
		reduced.Annotations = map[string]string{constants.AnnotationShootEmergencyStopReconciliations: "true"}
	}
	if settings := seed.Spec.Settings; settings != nil {
		reduced.Spec.Settings.Scheduling, reduced.Spec.Settings.ZoneSelection = settings.Scheduling, settings.ZoneSelection
	}
	if seed.Spec.Backup != nil {
		reduced.Spec.Backup = &corev1beta1.Backup{}
	}
	if seed.Status.LastOperation != nil {
		reduced.Status.LastOperation = &corev1beta1.LastOperation{}
	}
	for _, kind := range []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady, corev1beta1.SeedBackupBucketsReady} {
		if condition := corev1beta1.FindCondition(seed.Status.Conditions, kind); condition != nil && condition.Status == corev1beta1.ConditionTrue {
			reduced.Status.Conditions = append(reduced.Status.Conditions, corev1beta1.Condition{Type: kind})
		}
	}
	return reduced
}

func seedsDiffer(before, after *corev1beta1.Seed) bool {
	return !equality.Semantic.DeepEqual(facts(before), facts(after))
}

func profilesDiffer(before, after *corev1beta1.CloudProfile) bool {
	return !equality.Semantic.DeepEqual(before.Spec.SeedSelector, after.Spec.SeedSelector)
}

func projectsDiffer(before, after *corev1beta1.Project) bool {
	return ptr.Deref(before.Spec.Namespace, "") != ptr.Deref(after.Spec.Namespace, "")
}

func configsDiffer(before, after *corev1.ConfigMap) bool {
	return !maps.Equal(before.Data, after.Data) || !maps.Equal(before.Annotations, after.Annotations)
}

func never[T any](T, T) bool { return false }

func inNamespace(profile *corev1beta1.NamespacedCloudProfile) matcher {
	return func(key types.NamespacedName, _ refusal) bool { return key.Namespace == profile.Namespace }
}

func ofProject(project *corev1beta1.Project) matcher {
	namespace := ptr.Deref(project.Spec.Namespace, "")
	return func(key types.NamespacedName, refused refusal) bool {
		return key.Namespace == namespace || refused.project == project.Name
	}
}
