package routing

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	kindGateway = "Gateway"
	kindRoute   = "TLSRoute"
	kindService = "Service"
)

// problem is why something is not valid.
type problem struct{ reason, message string }

// listener is a listener of the Gateway.
type listener struct {
	spec gatewayv1.Listener
	// valid is set if connections are accepted for it. Otherwise one of the other fields says why.
	valid                          bool
	refused, unresolved, conflicts *problem
	// attached is the number of routes.
	attached int32
}

func (l *listener) hostname() string { return string(ptr.Deref(l.spec.Hostname, "")) }

// selectedBy reports whether a parent reference selects a listener.
func (l *listener) selectedBy(parent gatewayv1.ParentReference) bool {
	return (parent.SectionName == nil || *parent.SectionName == l.spec.Name) && (parent.Port == nil || *parent.Port == l.spec.Port)
}

// listeners returns the listeners of the Gateway.
func (in Inputs) listeners() []*listener {
	var all []*listener
	for _, spec := range in.Gateway.Spec.Listeners {
		one := &listener{spec: spec}
		switch {
		case spec.Protocol != gatewayv1.TLSProtocolType || spec.TLS == nil || ptr.Deref(spec.TLS.Mode, gatewayv1.TLSModeTerminate) != gatewayv1.TLSModePassthrough:
			one.refused = &problem{string(gatewayv1.ListenerReasonUnsupportedProtocol), "only the protocol TLS with the mode Passthrough is supported"}
		case spec.Port != in.Port:
			one.refused = &problem{string(gatewayv1.ListenerReasonPortUnavailable), fmt.Sprintf("only the port %d is supported", in.Port)}
		case !supportsRoutes(spec):
			one.unresolved = &problem{string(gatewayv1.ListenerReasonInvalidRouteKinds), "only the kind TLSRoute is supported"}
		case slices.ContainsFunc(all, func(other *listener) bool { return other.valid && other.hostname() == one.hostname() }):
			one.conflicts = &problem{string(gatewayv1.ListenerReasonHostnameConflict), "a listener before this one has the same hostname"}
		default:
			one.valid = true
		}
		all = append(all, one)
	}
	return all
}

// supportsRoutes reports whether TLSRoutes may be attached to a listener.
func supportsRoutes(spec gatewayv1.Listener) bool {
	if spec.AllowedRoutes == nil || len(spec.AllowedRoutes.Kinds) == 0 {
		return true
	}
	return slices.ContainsFunc(spec.AllowedRoutes.Kinds, func(kind gatewayv1.RouteGroupKind) bool {
		return kind.Kind == kindRoute && ptr.Deref(kind.Group, gatewayv1.GroupName) == gatewayv1.GroupName
	})
}

// allows reports whether a listener allows routes of a namespace.
func (in Inputs) allows(spec gatewayv1.Listener, namespace string) bool {
	allowed := ptr.Deref(ptr.Deref(spec.AllowedRoutes, gatewayv1.AllowedRoutes{}).Namespaces, gatewayv1.RouteNamespaces{})
	switch ptr.Deref(allowed.From, gatewayv1.NamespacesFromSame) {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSelector:
		selector, err := metav1.LabelSelectorAsSelector(allowed.Selector) // nil selects nothing
		of, exists := in.Namespace(namespace)
		return err == nil && exists && selector.Matches(labels.Set(of))
	case gatewayv1.NamespacesFromSame:
		return namespace == in.Gateway.Namespace
	}
	return false
}

// isParent reports whether a parent reference of a route is this Gateway.
func (in Inputs) isParent(route *gatewayv1.TLSRoute, parent gatewayv1.ParentReference) bool {
	return ptr.Deref(parent.Group, gatewayv1.GroupName) == gatewayv1.GroupName && ptr.Deref(parent.Kind, kindGateway) == kindGateway &&
		string(parent.Name) == in.Gateway.Name && string(ptr.Deref(parent.Namespace, gatewayv1.Namespace(route.Namespace))) == in.Gateway.Namespace
}

func sameParent(a, b gatewayv1.ParentReference) bool {
	return a.Name == b.Name && ptr.Equal(a.Group, b.Group) && ptr.Equal(a.Kind, b.Kind) && ptr.Equal(a.Namespace, b.Namespace) &&
		ptr.Equal(a.SectionName, b.SectionName) && ptr.Equal(a.Port, b.Port)
}

// backend returns a backend, and why it is not valid. References to other namespaces need a ReferenceGrant, which this gateway does not read.
func (in Inputs) backend(namespace string, ref gatewayv1.BackendRef) (Backend, *problem) {
	backend := Backend{
		Service: types.NamespacedName{Namespace: namespace, Name: string(ref.Name)}, Port: ptr.Deref(ref.Port, 0),
		Weight: ptr.Deref(ref.Weight, 1),
	}
	switch {
	case ptr.Deref(ref.Group, "") != "" || ptr.Deref(ref.Kind, kindService) != kindService:
		return backend, &problem{string(gatewayv1.RouteReasonInvalidKind), "a backend must be a Service"}
	case string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(namespace))) != namespace:
		return backend, &problem{string(gatewayv1.RouteReasonRefNotPermitted), "a backend must be in the namespace of the route"}
	}
	service := in.Service(backend.Service)
	if service == nil {
		return backend, &problem{string(gatewayv1.RouteReasonBackendNotFound), fmt.Sprintf("Service %s does not exist", backend.Service)}
	}
	if !slices.ContainsFunc(service.Spec.Ports, func(port corev1.ServicePort) bool { return port.Port == backend.Port }) {
		return backend, &problem{string(gatewayv1.RouteReasonBackendNotFound), fmt.Sprintf("Service %s has no port %d", backend.Service, backend.Port)}
	}
	backend.Valid = true
	return backend, nil
}
