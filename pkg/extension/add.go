package extension

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

const (
	defaultWorkers = 5
	// firstRetry and lastRetry are the shortest and longest delay of retries.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// AddToManager adds the controller of one kind and type. The manager's scheme needs [AddToScheme] and the kinds of
// Kubernetes. Its client reads from the manager's cache. The process needs permission to get, list, watch and patch
// objects of the kind and their status, to get, list and watch Clusters, and, for kinds that refer to Secrets, to get and
// patch those.
//
//	err := extension.AddToManager(mgr, infrastructureActuator, extension.Options{Type: "local"})
func AddToManager[T extensionsv1alpha1.Object](mgr manager.Manager, actuator Actuator[T], options Options) error {
	object, err := newObject[T]()
	if err != nil {
		return err
	}
	kind, err := kindOf(object, options.Type, mgr.GetScheme())
	if err != nil {
		return err
	}
	if options.Type == "" {
		return fmt.Errorf("options for %s have no type", kind.Kind)
	}
	options = options.withDefaults(kind)
	c := &controllerOf[T]{kind: kind, actuator: actuator, options: options, client: mgr.GetClient(), uncached: mgr.GetAPIReader()}
	sources := append([]source.Source{watches.Self(mgr.GetCache(), object, options.events())}, options.Sources...)
	if kind.ofShoots {
		sources = append(sources, watches.Kind(mgr.GetCache(), &extensionsv1alpha1.Cluster{}, c.clusterEvents()))
	}
	_, err = watches.Controller{
		Name: ControllerName(kind.Kind, options.Type), Reconciler: c, Workers: options.MaxConcurrentReconciles, RateLimiter: options.RateLimiter,
	}.AddTo(mgr, sources...)
	return err
}

// ControllerName returns the name of a controller in logs and metrics.
func ControllerName(kind, ofType string) string { return strings.ToLower(kind) + "-" + ofType }

// withDefaults returns the options with defaults for a kind.
func (o Options) withDefaults(kind kind) Options {
	o.MaxConcurrentReconciles = cmp.Or(o.MaxConcurrentReconciles, defaultWorkers)
	o.Timeout = cmp.Or(o.Timeout, kind.timeout)
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// events passes events that request an operation of the actuator.
func (o Options) events() predicate.Predicate {
	of := func(object client.Object) (extensionsv1alpha1.Object, bool) {
		one, is := object.(extensionsv1alpha1.Object)
		return one, is && Responsible(one, o.Type, o.Classes)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			object, is := of(e.Object)
			return is && begins(object, o.IgnoreOperationAnnotation)
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, was := e.ObjectOld.(extensionsv1alpha1.Object)
			after, is := of(e.ObjectNew)
			return was && is && asks(before, after, o.IgnoreOperationAnnotation)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
