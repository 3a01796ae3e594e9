package routing

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// reasonConflict is the reason for a route whose hosts older routes have. The Gateway API has no reason for it.
const reasonConflict = "HostnameConflict"

// condition sets a condition. The time of its last transition changes only with its status.
func (in Inputs) condition(conditions *[]metav1.Condition, generation int64, kind string, holds bool, reason, message string) {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: in.Now,
	})
}

// routeConditions sets the conditions of a route for one of its parents. winner returns the route that has a host.
func (in Inputs) routeConditions(route *gatewayv1.TLSRoute, entry *gatewayv1.RouteParentStatus, result attachment, unresolved *problem,
	winner func(host string) types.NamespacedName,
) {
	set := func(kind gatewayv1.RouteConditionType, holds bool, reason, message string) {
		in.condition(&entry.Conditions, route.Generation, string(kind), holds, reason, message)
	}
	own, lost := 0, ""
	for _, host := range result.hosts {
		if winner(host) == keyOf(route) {
			own++
		} else {
			lost = "the older TLSRoute " + winner(host).String() + " has the host " + host
		}
	}
	switch {
	case len(result.listeners) == 0:
		set(gatewayv1.RouteConditionAccepted, false, result.reason, result.message)
	case own == 0:
		set(gatewayv1.RouteConditionAccepted, false, reasonConflict, lost)
	default:
		set(gatewayv1.RouteConditionAccepted, true, string(gatewayv1.RouteReasonAccepted), "")
	}
	if own > 0 && lost != "" {
		set(gatewayv1.RouteConditionPartiallyInvalid, true, reasonConflict, lost+"; the other hosts are served")
	} else {
		meta.RemoveStatusCondition(&entry.Conditions, string(gatewayv1.RouteConditionPartiallyInvalid))
	}
	if unresolved != nil {
		set(gatewayv1.RouteConditionResolvedRefs, false, unresolved.reason, unresolved.message)
	} else {
		set(gatewayv1.RouteConditionResolvedRefs, true, string(gatewayv1.RouteReasonResolvedRefs), "")
	}
}

// gatewayStatus sets the status of the Gateway.
func (in Inputs) gatewayStatus(gateway *gatewayv1.Gateway, listeners []*listener) {
	status, generation := &gateway.Status, gateway.Generation
	set := func(kind gatewayv1.GatewayConditionType, holds bool, reason gatewayv1.GatewayConditionReason, message string) {
		in.condition(&status.Conditions, generation, string(kind), holds, string(reason), message)
	}
	served := slices.ContainsFunc(listeners, func(each *listener) bool { return each.valid })
	switch {
	case len(gateway.Spec.Addresses) > 0:
		set(gatewayv1.GatewayConditionAccepted, false, gatewayv1.GatewayReasonUnsupportedAddress, "spec.addresses: the Service of the gateway decides its addresses")
	case !served:
		set(gatewayv1.GatewayConditionAccepted, false, gatewayv1.GatewayReasonListenersNotValid, "spec.listeners: no listener is valid")
	case slices.ContainsFunc(listeners, func(each *listener) bool { return !each.valid }):
		set(gatewayv1.GatewayConditionAccepted, true, gatewayv1.GatewayReasonListenersNotValid, "spec.listeners: a listener is not valid")
	default:
		set(gatewayv1.GatewayConditionAccepted, true, gatewayv1.GatewayReasonAccepted, "")
	}
	switch {
	case !served:
		set(gatewayv1.GatewayConditionProgrammed, false, gatewayv1.GatewayReasonInvalid, "no listener is valid")
	case len(in.Addresses) == 0:
		set(gatewayv1.GatewayConditionProgrammed, false, gatewayv1.GatewayReasonAddressNotAssigned, "the Service of the gateway has no address yet")
	default:
		set(gatewayv1.GatewayConditionProgrammed, true, gatewayv1.GatewayReasonProgrammed, "")
	}
	status.Addresses = nil
	for _, address := range in.Addresses {
		kind := gatewayv1.HostnameAddressType
		if _, err := netip.ParseAddr(address); err == nil {
			kind = gatewayv1.IPAddressType
		}
		status.Addresses = append(status.Addresses, gatewayv1.GatewayStatusAddress{Type: ptr.To(kind), Value: address})
	}
	existing := status.Listeners
	status.Listeners = nil
	for _, each := range listeners {
		status.Listeners = append(status.Listeners, in.listenerStatus(each, existing, generation))
	}
}

// listenerStatus returns the status of a listener.
func (in Inputs) listenerStatus(each *listener, existing []gatewayv1.ListenerStatus, generation int64) gatewayv1.ListenerStatus {
	status := gatewayv1.ListenerStatus{
		Name: each.spec.Name, AttachedRoutes: each.attached,
		SupportedKinds: []gatewayv1.RouteGroupKind{{Group: ptr.To(gatewayv1.Group(gatewayv1.GroupName)), Kind: kindRoute}},
	}
	for _, other := range existing {
		if other.Name == each.spec.Name {
			status.Conditions = slices.Clone(other.Conditions)
		}
	}
	set := func(kind gatewayv1.ListenerConditionType, holds bool, reason, message string) {
		in.condition(&status.Conditions, generation, string(kind), holds, reason, message)
	}
	of := func(wrong *problem, kind gatewayv1.ListenerConditionType, good gatewayv1.ListenerConditionReason) {
		if wrong != nil {
			set(kind, false, wrong.reason, wrong.message)
		} else {
			set(kind, true, string(good), "")
		}
	}
	if each.unresolved != nil {
		status.SupportedKinds = []gatewayv1.RouteGroupKind{}
	}
	of(each.refused, gatewayv1.ListenerConditionAccepted, gatewayv1.ListenerReasonAccepted)
	of(each.unresolved, gatewayv1.ListenerConditionResolvedRefs, gatewayv1.ListenerReasonResolvedRefs)
	if each.conflicts != nil {
		set(gatewayv1.ListenerConditionConflicted, true, each.conflicts.reason, each.conflicts.message)
		set(gatewayv1.ListenerConditionAccepted, false, each.conflicts.reason, each.conflicts.message)
	} else {
		set(gatewayv1.ListenerConditionConflicted, false, string(gatewayv1.ListenerReasonNoConflicts), "")
	}
	if each.valid {
		set(gatewayv1.ListenerConditionProgrammed, true, string(gatewayv1.ListenerReasonProgrammed), "")
	} else {
		set(gatewayv1.ListenerConditionProgrammed, false, string(gatewayv1.ListenerReasonInvalid), "the listener is not valid")
	}
	return status
}
