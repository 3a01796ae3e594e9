// Package routing decides, as a pure function, which host leads to which Service, and what the status of a Gateway and of its TLSRoutes is. The
// rules are those of the Gateway API (sigs.k8s.io/gateway-api) for TLSRoutes and listeners with TLS that is passed through.
package routing

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Controller is the name of the gateway in GatewayClasses.
const Controller = "trellis.local/gateway"

// Inputs are what decides.
type Inputs struct {
	// Gateway, or nil if it does not exist. Class is its GatewayClass, or nil if that does not exist.
	Gateway *gatewayv1.Gateway
	Class   *gatewayv1.GatewayClass
	// Routes are all TLSRoutes.
	Routes []*gatewayv1.TLSRoute
	// Namespace returns the labels of a namespace, and whether it exists.
	Namespace func(string) (map[string]string, bool)
	// Service returns a Service, or nil if it does not exist.
	Service func(types.NamespacedName) *corev1.Service
	// Port is the port of listeners that this gateway serves.
	Port int32
	// Addresses are those at which clients reach the gateway.
	Addresses []string
	Now       metav1.Time
}

// isServed reports whether the Gateway belongs to this gateway.
func (in Inputs) isServed() bool {
	return in.Gateway != nil && in.Gateway.DeletionTimestamp == nil && in.Class != nil && in.Class.Spec.ControllerName == Controller
}

// older orders routes: of those with the same host, the first one has it.
func older(a, b *gatewayv1.TLSRoute) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func keyOf(route *gatewayv1.TLSRoute) types.NamespacedName {
	return types.NamespacedName{Namespace: route.Namespace, Name: route.Name}
}

// attachment is the result for one parent reference of a route. It does not depend on other routes.
type attachment struct {
	parent gatewayv1.ParentReference
	// listeners are those that the route is attached to, and hosts what both have.
	listeners []*listener
	hosts     []string
	// reason and message say why there are none.
	reason, message string
}

// attach attaches a route to the listeners that a parent reference selects.
func (in Inputs) attach(route *gatewayv1.TLSRoute, parent gatewayv1.ParentReference, listeners []*listener) attachment {
	result := attachment{parent: parent, reason: string(gatewayv1.RouteReasonNoMatchingParent), message: "no valid listener has this name and port"}
	for _, each := range listeners {
		if !each.valid || !each.selectedBy(parent) {
			continue
		}
		if !in.allows(each.spec, route.Namespace) {
			if result.reason == string(gatewayv1.RouteReasonNoMatchingParent) {
				result.reason, result.message = string(gatewayv1.RouteReasonNotAllowedByListeners), "the listener allows no routes of this namespace"
			}
			continue
		}
		attached := false
		for _, host := range route.Spec.Hostnames {
			if common := intersect(each.hostname(), string(host)); common != "" {
				attached = true
				result.hosts = append(result.hosts, common)
			}
		}
		if attached {
			result.listeners = append(result.listeners, each)
		} else {
			result.reason, result.message = string(gatewayv1.RouteReasonNoMatchingListenerHostname), "no listener has one of the hosts of the route"
		}
	}
	return result
}

// backends returns the backends of a route, and the condition for the first one that is not valid.
func (in Inputs) backends(route *gatewayv1.TLSRoute) (all []Backend, unresolved *problem) {
	for _, rule := range route.Spec.Rules {
		for _, ref := range rule.BackendRefs {
			backend, wrong := in.backend(route.Namespace, ref)
			if wrong != nil && unresolved == nil {
				unresolved = wrong
			}
			if backend.Weight > 0 {
				all = append(all, backend)
			}
		}
	}
	return all, unresolved
}
