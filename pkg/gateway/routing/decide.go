// Package routing decides, as a pure function, which host leads to which Service, and what the status of a Gateway and of its TLSRoutes is. The
// rules are those of the Gateway API (sigs.k8s.io/gateway-api) for TLSRoutes and listeners with TLS that is passed through.
package routing

import (
	"cmp"
	"slices"

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
	// Namespaces are the labels of all namespaces.
	Namespaces map[string]map[string]string
	// Service returns a Service, or nil if it does not exist.
	Service func(types.NamespacedName) *corev1.Service
	// Port is the port of listeners that this gateway serves.
	Port int32
	// Addresses are those at which clients reach the gateway.
	Addresses []string
	Now       metav1.Time
}

// Decision is the result. The objects are copies with the wanted status, and are equal to the given ones if nothing changes.
type Decision struct {
	Table *Table
	// Gateway and Class are nil if they do not belong to this gateway.
	Gateway *gatewayv1.Gateway
	Class   *gatewayv1.GatewayClass
	// Routes are those whose status has, or had, an entry of this gateway.
	Routes []*gatewayv1.TLSRoute
}

// Decide decides.
func Decide(in Inputs) Decision {
	decided := Decision{Table: &Table{exact: map[string]Target{}, wildcards: map[string]Target{}}}
	if in.Gateway == nil || in.Gateway.DeletionTimestamp != nil || in.Class == nil || in.Class.Spec.ControllerName != Controller {
		return decided
	}
	decided.Gateway, decided.Class = in.Gateway.DeepCopy(), in.Class.DeepCopy()
	listeners := in.listeners()
	routes := slices.SortedFunc(slices.Values(in.Routes), func(a, b *gatewayv1.TLSRoute) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, route := range routes {
		if wanted := in.route(route, listeners, decided.Table); wanted != nil {
			decided.Routes = append(decided.Routes, wanted)
		}
	}
	in.gatewayStatus(decided.Gateway, listeners)
	in.condition(&decided.Class.Status.Conditions, decided.Class.Generation, string(gatewayv1.GatewayClassConditionStatusAccepted), true,
		string(gatewayv1.GatewayClassReasonAccepted), "")
	return decided
}

// attachment is the result for one parent reference of a route.
type attachment struct {
	accepted        bool
	reason, message string
	// lost is a host that an older route has, and winner that route.
	lost   string
	winner types.NamespacedName
}

// route adds the hosts of a route to the table. It returns the route with its wanted status; nil if it has nothing to do with this gateway.
func (in Inputs) route(route *gatewayv1.TLSRoute, listeners []*listener, table *Table) *gatewayv1.TLSRoute {
	backends, unresolved := in.backends(route)
	target := Target{Route: types.NamespacedName{Namespace: route.Namespace, Name: route.Name}, Backends: backends}
	var entries []gatewayv1.RouteParentStatus
	for _, parent := range route.Spec.ParentRefs {
		if !in.isParent(route, parent) {
			continue
		}
		entry := gatewayv1.RouteParentStatus{ParentRef: parent, ControllerName: Controller}
		for _, existing := range route.Status.Parents {
			if existing.ControllerName == Controller && sameParent(existing.ParentRef, parent) {
				entry.Conditions = slices.Clone(existing.Conditions)
			}
		}
		in.routeConditions(route, &entry, in.attach(route, parent, listeners, table, target), unresolved)
		entries = append(entries, entry)
	}
	wanted := route.DeepCopy()
	wanted.Status.Parents = slices.DeleteFunc(wanted.Status.Parents, func(existing gatewayv1.RouteParentStatus) bool {
		return existing.ControllerName == Controller && in.isParent(route, existing.ParentRef)
	})
	if len(entries) == 0 && len(wanted.Status.Parents) == len(route.Status.Parents) {
		return nil
	}
	wanted.Status.Parents = append(wanted.Status.Parents, entries...)
	return wanted
}

// attach attaches a route to the listeners that a parent reference selects.
func (in Inputs) attach(route *gatewayv1.TLSRoute, parent gatewayv1.ParentReference, listeners []*listener, table *Table, target Target) attachment {
	result := attachment{reason: string(gatewayv1.RouteReasonNoMatchingParent), message: "no valid listener has this name and port"}
	claimed := 0
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
			common := intersect(each.hostname(), string(host))
			if common == "" {
				continue
			}
			attached = true
			if winner, is := table.claim(common, target); is {
				claimed++
			} else {
				result.lost, result.winner = common, winner
			}
		}
		if attached {
			each.attached++
			result.accepted = true
		} else if !result.accepted {
			result.reason, result.message = string(gatewayv1.RouteReasonNoMatchingListenerHostname), "no listener has one of the hosts of the route"
		}
	}
	if result.accepted && claimed == 0 {
		result.accepted, result.reason = false, reasonConflict
		result.message = "the older TLSRoute " + result.winner.String() + " has the host " + result.lost
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
