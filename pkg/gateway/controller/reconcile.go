package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/trellis-k8s/trellis/pkg/dnsvalues"
	"github.com/trellis-k8s/trellis/pkg/gateway/routing"
)

// mostDelay is the most time until a replica writes a changed status. Each one waits for a random time, so that the others usually find it
// written. There is no leader: a gateway must not end because it loses a Lease.
const mostDelay = time.Second

// mostWrites is the number of objects whose status is written until the gateway decides again. The first status of 1,000 routes takes 20 seconds, for
// which new hosts must not wait.
const mostWrites = 25

// The requests of the controller. All others are the names of TLSRoutes. These are not valid names of objects.
var (
	// everything decides about all routes: the Gateway or its class has changed.
	everything = reconcile.Request{}
	// statuses writes changed statuses.
	statuses = reconcile.Request{NamespacedName: types.NamespacedName{Name: "*statuses"}}
)

// reconciler decides again whenever an object has changed. It has one worker.
type reconciler struct {
	options Options
	// objects are cached. They must not be changed.
	objects client.Reader
	status  client.Client
	router  *Router
	clock   clock.Clock
	hosts   interface{ Set(float64) }
	// wake requests statuses.
	wake func()
	// kept is the decision; nil until the first one.
	kept *routing.Kept
	// pending are the routes whose status must be written.
	pending map[types.NamespacedName]bool
	// due is when a changed status may be written; zero if none has changed.
	due time.Time
}

// Reconcile decides which host leads where, about all routes or one, or writes the status of objects.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	switch {
	case request == everything || r.kept == nil:
		if err := r.decide(ctx); err != nil {
			return reconcile.Result{}, err
		}
	case request == statuses:
		return r.writeStatuses(ctx)
	default:
		if err := r.decideRoute(ctx, request.NamespacedName); err != nil {
			return reconcile.Result{}, err
		}
	}
	r.hosts.Set(float64(r.kept.Table().Hosts()))
	r.wake()
	return reconcile.Result{}, nil
}

// decide decides about all routes.
func (r *reconciler) decide(ctx context.Context) error {
	in, err := r.observe(ctx)
	if err != nil {
		return err
	}
	list := &gatewayv1.TLSRouteList{}
	if err := r.objects.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("read TLSRoutes: %w", err)
	}
	for i := range list.Items {
		in.Routes = append(in.Routes, &list.Items[i])
	}
	r.kept, r.pending = routing.Keep(in), map[types.NamespacedName]bool{}
	r.router.table.Store(r.kept.Table())
	for _, route := range in.Routes {
		r.pending[client.ObjectKeyFromObject(route)] = true
	}
	return nil
}

// decideRoute decides about a route, and about those that have a host of it, or that get one that it had.
func (r *reconciler) decideRoute(ctx context.Context, key types.NamespacedName) error {
	route := &gatewayv1.TLSRoute{}
	if err := r.objects.Get(ctx, key, route, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
		route = nil
	} else if err != nil {
		return fmt.Errorf("read TLSRoute %s: %w", key, err)
	}
	for _, affected := range r.kept.Change(key, route) {
		r.pending[affected] = true
	}
	return nil
}

// writeStatuses writes what has changed, after a random time, and some objects at a time.
func (r *reconciler) writeStatuses(ctx context.Context) (reconcile.Result, error) {
	in, err := r.observe(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	changed := r.changed(in)
	now := r.clock.Now()
	switch {
	case len(changed) == 0:
		r.due = time.Time{}
		return reconcile.Result{}, nil
	case r.due.IsZero():
		r.due = now.Add(rand.N(mostDelay)) //nolint:gosec // not a secret
	}
	if now.Before(r.due) {
		return reconcile.Result{RequeueAfter: r.due.Sub(now)}, nil
	}
	if len(changed) > mostWrites {
		_, err := r.write(ctx, changed[:mostWrites])
		return reconcile.Result{RequeueAfter: time.Millisecond}, err
	}
	r.due = time.Time{}
	return r.write(ctx, changed)
}

// write writes the status of objects. Another replica might have written it meanwhile.
func (r *reconciler) write(ctx context.Context, changed []client.Object) (reconcile.Result, error) {
	var failed []error
	conflict := false
	for _, object := range changed {
		err := r.status.Status().Update(ctx, object)
		if route, is := object.(*gatewayv1.TLSRoute); is && client.IgnoreNotFound(err) == nil {
			delete(r.pending, client.ObjectKeyFromObject(route)) // the watch brings the new status, which is judged again
		}
		switch {
		case apierrors.IsConflict(err):
			conflict = true
		case client.IgnoreNotFound(err) != nil:
			failed = append(failed, fmt.Errorf("write the status of %T %s: %w", object, client.ObjectKeyFromObject(object), err))
		}
	}
	if conflict && len(failed) == 0 {
		return reconcile.Result{RequeueAfter: mostDelay}, nil
	}
	return reconcile.Result{}, errors.Join(failed...)
}

// changed returns objects whose status must be written, at least one more than are written at a time if there are that many.
func (r *reconciler) changed(in routing.Inputs) []client.Object {
	var changed []client.Object
	if gateway, class := r.kept.Status(in); gateway != nil {
		if !equality.Semantic.DeepEqual(in.Class.Status, class.Status) {
			changed = append(changed, class)
		}
		if !equality.Semantic.DeepEqual(in.Gateway.Status, gateway.Status) {
			changed = append(changed, gateway)
		}
	}
	for key := range r.pending {
		if len(changed) > mostWrites {
			break
		}
		if existing, wanted := r.kept.Route(key, in.Now); wanted != nil && !equality.Semantic.DeepEqual(existing.Status, wanted.Status) {
			changed = append(changed, wanted)
		} else {
			delete(r.pending, key)
		}
	}
	return changed
}

// observe reads all objects but the routes.
func (r *reconciler) observe(ctx context.Context) (routing.Inputs, error) {
	in := routing.Inputs{Port: r.options.ListenerPort, Now: metav1.NewTime(r.clock.Now())}
	gateway, class := &gatewayv1.Gateway{}, &gatewayv1.GatewayClass{}
	if err := r.objects.Get(ctx, r.options.Gateway, gateway, client.UnsafeDisableDeepCopy); err == nil {
		in.Gateway = gateway
	} else if !apierrors.IsNotFound(err) {
		return in, fmt.Errorf("read Gateway %s: %w", r.options.Gateway, err)
	}
	if in.Gateway == nil {
		return in, nil
	}
	if err := r.objects.Get(ctx, client.ObjectKey{Name: string(gateway.Spec.GatewayClassName)}, class, client.UnsafeDisableDeepCopy); err == nil {
		in.Class = class
	} else if !apierrors.IsNotFound(err) {
		return in, fmt.Errorf("read GatewayClass %s: %w", gateway.Spec.GatewayClassName, err)
	}
	in.Namespace = func(name string) (map[string]string, bool) {
		namespace := &corev1.Namespace{}
		if r.objects.Get(ctx, client.ObjectKey{Name: name}, namespace, client.UnsafeDisableDeepCopy) != nil {
			return nil, false // the cache has all namespaces
		}
		return namespace.Labels, true
	}
	in.Service = func(key types.NamespacedName) *corev1.Service {
		service := &corev1.Service{}
		if r.objects.Get(ctx, key, service, client.UnsafeDisableDeepCopy) != nil {
			return nil // the cache has all Services
		}
		return service
	}
	if r.options.Service != "" {
		if own := in.Service(types.NamespacedName{Namespace: r.options.Gateway.Namespace, Name: r.options.Service}); own != nil {
			in.Addresses = dnsvalues.AddressesOf(own)
		}
	}
	return in, nil
}
