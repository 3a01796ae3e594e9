package routing

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Kept is a decision that changes route by route. It is always the same as a new one about all routes.
type Kept struct {
	in        Inputs
	listeners []*listener
	table     *Table
	routes    map[types.NamespacedName]*keptRoute
	// claimants are the routes that have a host at a listener, the oldest first. The host leads to the first one.
	claimants map[string][]*keptRoute
}

// keptRoute is a route and what does not depend on others.
type keptRoute struct {
	route       *gatewayv1.TLSRoute
	target      Target
	unresolved  *problem
	attachments []attachment
}

// Keep decides about all routes.
func Keep(in Inputs) *Kept {
	k := &Kept{
		in: in, table: &Table{exact: map[string]Target{}, wildcards: map[string]Target{}}, routes: map[types.NamespacedName]*keptRoute{},
		claimants: map[string][]*keptRoute{},
	}
	if in.isServed() {
		k.listeners = in.listeners()
	}
	for _, route := range in.Routes {
		k.Change(keyOf(route), route)
	}
	k.in.Routes = nil // routes has them
	return k
}

// Table returns the table, which follows changes.
func (k *Kept) Table() *Table { return k.table }

// Change decides again about a route that changed, or on whose Services or namespace something changed; nil if it does not exist any more.
// It returns the routes whose status can change: this one, and those with one of the hosts that it has, or had.
func (k *Kept) Change(key types.NamespacedName, route *gatewayv1.TLSRoute) []types.NamespacedName {
	if !k.in.isServed() {
		return nil
	}
	touched := map[string]bool{}
	if before := k.routes[key]; before != nil {
		for host := range before.hosts() {
			touched[host] = true
			k.claimants[host] = slices.DeleteFunc(k.claimants[host], func(other *keptRoute) bool { return other == before })
		}
		before.count(-1)
		delete(k.routes, key)
	}
	if route != nil {
		after := k.in.keep(route, k.listeners)
		for host := range after.hosts() {
			touched[host] = true
			at, _ := slices.BinarySearchFunc(k.claimants[host], after, func(a, b *keptRoute) int { return older(a.route, b.route) })
			k.claimants[host] = slices.Insert(k.claimants[host], at, after)
		}
		after.count(1)
		k.routes[key] = after
	}
	affected := []types.NamespacedName{key}
	for host := range touched {
		for _, other := range k.claimants[host] {
			if other.target.Route != key {
				affected = append(affected, other.target.Route)
			}
		}
		k.lead(host)
	}
	return affected
}

// lead makes a host lead to the oldest route that has it.
func (k *Kept) lead(host string) {
	if len(k.claimants[host]) == 0 {
		delete(k.claimants, host)
		k.table.set(host, nil)
		return
	}
	k.table.set(host, &k.claimants[host][0].target)
}

// keep decides what does not depend on other routes.
func (in Inputs) keep(route *gatewayv1.TLSRoute, listeners []*listener) *keptRoute {
	one := &keptRoute{route: route}
	for _, parent := range route.Spec.ParentRefs {
		if in.isParent(route, parent) {
			one.attachments = append(one.attachments, in.attach(route, parent, listeners))
		}
	}
	one.target.Route = keyOf(route)
	one.target.Backends, one.unresolved = in.backends(route)
	return one
}

// hosts returns the hosts that a route has at listeners.
func (r *keptRoute) hosts() map[string]bool {
	hosts := map[string]bool{}
	for _, each := range r.attachments {
		for _, host := range each.hosts {
			hosts[host] = true
		}
	}
	return hosts
}

// count adds to the numbers of routes of the listeners to which a route is attached.
func (r *keptRoute) count(number int32) {
	for _, each := range r.attachments {
		for _, listener := range each.listeners {
			listener.attached += number
		}
	}
}

// Route returns a route, and a copy with its wanted status. The copy is nil if the route does not exist, or if it has nothing to do with this
// gateway, and had not before.
func (k *Kept) Route(key types.NamespacedName, now metav1.Time) (existing, wanted *gatewayv1.TLSRoute) {
	one := k.routes[key]
	if one == nil {
		return nil, nil
	}
	in, route := k.in, one.route
	in.Now = now
	var entries []gatewayv1.RouteParentStatus
	for _, each := range one.attachments {
		entry := gatewayv1.RouteParentStatus{ParentRef: each.parent, ControllerName: Controller}
		for _, existing := range route.Status.Parents {
			if existing.ControllerName == Controller && sameParent(existing.ParentRef, each.parent) {
				entry.Conditions = slices.Clone(existing.Conditions)
			}
		}
		in.routeConditions(route, &entry, each, one.unresolved, func(host string) types.NamespacedName { return k.claimants[host][0].target.Route })
		entries = append(entries, entry)
	}
	wanted = route.DeepCopy()
	wanted.Status.Parents = slices.DeleteFunc(wanted.Status.Parents, func(existing gatewayv1.RouteParentStatus) bool {
		return existing.ControllerName == Controller && in.isParent(route, existing.ParentRef)
	})
	if len(entries) == 0 && len(wanted.Status.Parents) == len(route.Status.Parents) {
		return route, nil
	}
	wanted.Status.Parents = append(wanted.Status.Parents, entries...)
	return route, wanted
}

// Status returns the Gateway and its class with their wanted status; nil if they do not belong to this gateway. Only their status, the
// addresses and the time may differ from what was decided about.
func (k *Kept) Status(now Inputs) (*gatewayv1.Gateway, *gatewayv1.GatewayClass) {
	if !k.in.isServed() || !now.isServed() {
		return nil, nil
	}
	gateway, class := now.Gateway.DeepCopy(), now.Class.DeepCopy()
	now.gatewayStatus(gateway, k.listeners)
	now.condition(&class.Status.Conditions, class.Generation, string(gatewayv1.GatewayClassConditionStatusAccepted), true,
		string(gatewayv1.GatewayClassReasonAccepted), "")
	return gateway, class
}
