package controller

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/trellis-k8s/trellis/pkg/gateway/routing"
	"github.com/trellis-k8s/trellis/test/kit"
)

type gauge struct{ value float64 }

func (g *gauge) Set(value float64) { g.value = value }

// served returns the Gateway and its class.
func served() (types.NamespacedName, []client.Object) {
	key := types.NamespacedName{Namespace: "istio-ingress", Name: "kube-apiservers"}
	return key, []client.Object{
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: routing.Controller}},
		&gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: gatewayv1.GatewaySpec{
			GatewayClassName: "class", Listeners: []gatewayv1.Listener{{
				Name: "tls", Port: 443, Protocol: gatewayv1.TLSProtocolType, TLS: &gatewayv1.ListenerTLSConfig{Mode: ptr.To(gatewayv1.TLSModePassthrough)},
				AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: ptr.To(gatewayv1.NamespacesFromAll)}},
			}},
		}},
	}
}

// routed returns the namespace, the Service and the route of a control plane.
func routed(name string, gateway types.NamespacedName) []client.Object {
	meta := metav1.ObjectMeta{Namespace: name, Name: "kube-apiserver"}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}},
		&gatewayv1.TLSRoute{ObjectMeta: meta, Spec: gatewayv1.TLSRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{
				Namespace: ptr.To(gatewayv1.Namespace(gateway.Namespace)), Name: gatewayv1.ObjectName(gateway.Name),
			}}},
			Hostnames: []gatewayv1.Hostname{gatewayv1.Hostname("api." + name + ".example.org")},
			Rules: []gatewayv1.TLSRouteRule{{BackendRefs: []gatewayv1.BackendRef{{
				BackendObjectReference: gatewayv1.BackendObjectReference{Name: "kube-apiserver", Port: ptr.To(gatewayv1.PortNumber(443))},
			}}}},
		}},
	}
}

// TestStatusOfManyRoutes checks that a new host is served while the status of many routes is still being written, and that all get one.
func TestStatusOfManyRoutes(t *testing.T) {
	const many = 3*mostWrites + 5
	key, objects := served()
	for i := range many {
		objects = append(objects, routed(fmt.Sprintf("s%d", i), key)...)
	}
	seed := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...).
		WithStatusSubresource(&gatewayv1.TLSRoute{}, &gatewayv1.Gateway{}, &gatewayv1.GatewayClass{}).Build()
	clock := testingclock.NewFakeClock(time.Unix(1000, 0))
	r := &reconciler{options: Options{Gateway: key, ListenerPort: 443}, objects: seed, status: seed, router: &Router{}, clock: clock, hosts: &gauge{}, wake: func() {}}
	do := func(request reconcile.Request) time.Duration {
		result, err := r.Reconcile(t.Context(), request)
		kit.Must(t, err)
		return result.RequeueAfter
	}
	pass := func() time.Duration { return do(statuses) }
	withStatus := func() (count int) {
		list := &gatewayv1.TLSRouteList{}
		kit.Must(t, seed.List(t.Context(), list))
		for i := range list.Items {
			if len(list.Items[i].Status.Parents) > 0 {
				count++
			}
		}
		return count
	}
	do(everything)
	if pass(); r.router.table.Load().Hosts() != many || withStatus() != 0 {
		t.Fatalf("%d hosts are served, and %d routes have a status", r.router.table.Load().Hosts(), withStatus())
	}
	clock.Step(mostDelay)
	if again := pass(); again == 0 || withStatus() == 0 || withStatus() > mostWrites {
		t.Fatalf("%d routes have a status, the next pass is after %s", withStatus(), again)
	}
	for _, object := range routed("new", key) {
		kit.Must(t, seed.Create(t.Context(), object))
	}
	do(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "new", Name: "kube-apiserver"}})
	if _, found := r.router.table.Load().Lookup("api.new.example.org"); !found || withStatus() >= many {
		t.Errorf("a new host is served: %t; %d routes have a status", found, withStatus())
	}
	for range 5 {
		pass()
	}
	if withStatus() != many+1 {
		t.Errorf("%d of %d routes have a status", withStatus(), many+1)
	}
}
