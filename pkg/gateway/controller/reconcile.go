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

// reconciler decides again whenever an object has changed.
type reconciler struct {
	options Options
	// objects are cached. They must not be changed.
	objects client.Reader
	status  client.Client
	router  *Router
	clock   clock.Clock
	hosts   interface{ Set(float64) }
	// due is when a changed status may be written; zero if none has changed.
	due time.Time
}

// Reconcile decides which host leads where, and writes the status of objects.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	in, err := r.observe(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	decided := routing.Decide(in)
	r.router.table.Store(decided.Table)
	r.hosts.Set(float64(decided.Table.Hosts()))
	changed := r.changed(in, decided)
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

// changed returns the objects whose status must be written.
func (r *reconciler) changed(in routing.Inputs, decided routing.Decision) []client.Object {
	var changed []client.Object
	if decided.Class != nil && !equality.Semantic.DeepEqual(in.Class.Status, decided.Class.Status) {
		changed = append(changed, decided.Class)
	}
	if decided.Gateway != nil && !equality.Semantic.DeepEqual(in.Gateway.Status, decided.Gateway.Status) {
		changed = append(changed, decided.Gateway)
	}
	existing := map[types.NamespacedName]*gatewayv1.TLSRoute{}
	for _, route := range in.Routes {
		existing[client.ObjectKeyFromObject(route)] = route
	}
	for _, route := range decided.Routes {
		if before := existing[client.ObjectKeyFromObject(route)]; !equality.Semantic.DeepEqual(before.Status, route.Status) {
			changed = append(changed, route)
		}
	}
	return changed
}

// observe reads the objects.
func (r *reconciler) observe(ctx context.Context) (routing.Inputs, error) {
	in := routing.Inputs{Port: r.options.ListenerPort, Now: metav1.NewTime(r.clock.Now()), Namespaces: map[string]map[string]string{}}
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
	routes, namespaces := &gatewayv1.TLSRouteList{}, &corev1.NamespaceList{}
	if err := errors.Join(
		r.objects.List(ctx, routes, client.UnsafeDisableDeepCopy), r.objects.List(ctx, namespaces, client.UnsafeDisableDeepCopy),
	); err != nil {
		return in, fmt.Errorf("read TLSRoutes and Namespaces: %w", err)
	}
	for i := range routes.Items {
		in.Routes = append(in.Routes, &routes.Items[i])
	}
	for i := range namespaces.Items {
		in.Namespaces[namespaces.Items[i].Name] = namespaces.Items[i].Labels
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
