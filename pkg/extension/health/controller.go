package health

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

const (
	fieldManager = "gardener-extension-health"
	workers      = 5
	// lookTimeout limits all checks of one object.
	lookTimeout = time.Minute
)

// AddToManager adds the controller that writes the conditions of one kind and type. It checks objects on changes and at
// [Options.Every], and only writes changes.
func AddToManager[T extensionsv1alpha1.Object](mgr manager.Manager, options Options[T]) error {
	of := reflect.TypeFor[T]()
	if of.Kind() != reflect.Pointer {
		return fmt.Errorf("%s is not a pointer to a kind", of)
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	c := &controllerOf[T]{options: options, client: mgr.GetClient(), element: of.Elem()}
	object, err := c.newObject()
	if err != nil {
		return err
	}
	gvk, err := apiutil.GVKForObject(object, mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("the scheme does not have %s: %w", of, err)
	}
	name := "health-" + extension.ControllerName(gvk.Kind, options.Type)
	sources := append([]source.Source{watches.Self(mgr.GetCache(), object, c.events())}, options.Sources...)
	_, err = watches.Controller{Name: name, Reconciler: c, Workers: workers}.AddTo(mgr, sources...)
	return err
}

// controllerOf writes the conditions of objects of one kind and type.
type controllerOf[T extensionsv1alpha1.Object] struct {
	options Options[T]
	client  client.Client
	element reflect.Type
}

func (c *controllerOf[T]) newObject() (T, error) {
	object, is := reflect.New(c.element).Interface().(T)
	if !is {
		return object, fmt.Errorf("%s is not a kind", c.element)
	}
	return object, nil
}

// events passes changes that may affect the conditions. Changes of the conditions themselves do not.
func (c *controllerOf[T]) events() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, was := e.ObjectOld.(T)
			after, is := e.ObjectNew.(T)
			if !was || !is {
				return false
			}
			return before.GetGeneration() != after.GetGeneration() ||
				!equality.Semantic.DeepEqual(before.GetExtensionStatus().LastOperation, after.GetExtensionStatus().LastOperation)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// Reconcile checks an object and writes its conditions.
func (c *controllerOf[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object, err := c.newObject()
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := c.client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !extension.Responsible(object, c.options.Type, c.options.Classes) || undecided(object) {
		return reconcile.Result{}, nil
	}
	all, err := c.look(ctx, object)
	if err != nil {
		return reconcile.Result{}, err
	}
	status, now := object.GetExtensionStatus(), c.options.Clock.Now()
	conditions, next := conclude(status.Conditions, all, c.options.Obsolete, now)
	again := reconcile.Result{RequeueAfter: c.options.Every}
	if pause := next.Sub(now); !next.IsZero() && (again.RequeueAfter == 0 || pause < again.RequeueAfter) {
		again.RequeueAfter = pause
	}
	if equality.Semantic.DeepEqual(conditions, status.Conditions) {
		return again, nil
	}
	before, is := object.DeepCopyObject().(client.Object)
	if !is {
		return reconcile.Result{}, fmt.Errorf("the copy of a %T is not an object", object)
	}
	status.Conditions = conditions
	// The patch replaces the whole list, so it must fail if another writer has changed it.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.client.Status().Patch(ctx, object, patch, client.FieldOwner(fieldManager)); err != nil {
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("write the conditions: %w", err)
	}
	return again, nil
}

// undecided reports whether the health of an object is not relevant: it is being deleted or migrated, or an operation is
// about to start. In the latter case, a write could conflict with the controller of the operation. The next status of the
// operation triggers another check.
func undecided(object extensionsv1alpha1.Object) bool {
	last := object.GetExtensionStatus().LastOperation
	return object.GetDeletionTimestamp() != nil || object.GetAnnotations()[constants.AnnotationGardenerOperation] != "" ||
		last == nil || last.Type == corev1beta1.LastOperationTypeMigrate
}

// look runs all checks of an object.
func (c *controllerOf[T]) look(ctx context.Context, object T) ([]found, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	cluster, err := extension.ClusterOf(ctx, c.client, object)
	if err != nil {
		return nil, err
	}
	all := make([]found, 0, len(c.options.Checks))
	for _, check := range c.options.Checks {
		one := found{condition: check.Condition, threshold: check.ProgressingThreshold}
		if cluster != nil && cluster.Hibernated() && !check.WhileHibernated {
			one.finding = Finding{Status: corev1beta1.ConditionTrue, Message: "Shoot is hibernated"}
		} else {
			one.finding, one.err = check.Look(ctx, object, cluster)
		}
		all = append(all, one)
	}
	return all, nil
}
