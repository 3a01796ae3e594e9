package netpol

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// gatewayMesh is a reserved name for all sidecars. It does not name a Gateway.
const gatewayMesh = "mesh"

// clusterDomain is the suffix of Service host names in VirtualServices.
const clusterDomain = ".svc.cluster.local"

// VirtualService has the relevant fields of a VirtualService of Istio.
type VirtualService struct {
	metav1.ObjectMeta
	// Gateways are the referenced Gateways, without the reserved name of the mesh, sorted.
	Gateways []types.NamespacedName
	// Destinations are the destination ports of Services in its own namespace, sorted.
	Destinations []Destination
}

// Destination is a port of a Service.
type Destination struct {
	Service string
	Port    int32
}

// Gateway has the relevant fields of a Gateway of Istio.
type Gateway struct {
	// Selector selects its Pods.
	Selector map[string]string
	// Namespaces are the namespaces with such Pods.
	Namespaces []string
}

// ReadVirtualService reads a VirtualService of networking.istio.io. It ignores fields that do not have the type in its
// definition.
func ReadVirtualService(object *unstructured.Unstructured) *VirtualService {
	result := &VirtualService{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}}
	for _, one := range listAt(object.Object, "spec", "gateways") {
		name, isText := one.(string)
		if !isText || name == "" || name == gatewayMesh {
			continue
		}
		key := types.NamespacedName{Namespace: object.GetNamespace(), Name: name}
		if namespace, inNamespace, found := strings.Cut(name, "/"); found {
			key = types.NamespacedName{Namespace: namespace, Name: inNamespace}
		}
		result.Gateways = append(result.Gateways, key)
	}
	for _, protocol := range []string{"http", "tls", "tcp"} {
		for _, one := range listAt(object.Object, "spec", protocol) {
			result.Destinations = append(result.Destinations, destinationsOf(one, object.GetNamespace())...)
		}
	}
	slices.SortFunc(result.Gateways, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	slices.SortFunc(result.Destinations, func(a, b Destination) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Port, b.Port))
	})
	result.Gateways, result.Destinations = slices.Compact(result.Gateways), slices.Compact(result.Destinations)
	return result
}

// listAt returns a list in an object; empty if the field has another type.
func listAt(object map[string]any, path ...string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...) // an error means a different type
	list, _ := value.([]any)
	return list
}

// destinationsOf returns the destinations of a route that are Services in the namespace.
func destinationsOf(route any, namespace string) []Destination {
	fields, isMap := route.(map[string]any)
	if !isMap {
		return nil
	}
	var found []Destination
	for _, one := range listAt(fields, "route") {
		entry, isMap := one.(map[string]any)
		if !isMap {
			continue
		}
		host, _, _ := unstructured.NestedString(entry, "destination", "host")
		number, hasPort, err := unstructured.NestedInt64(entry, "destination", "port", "number")
		name, isOwn := strings.CutSuffix(host, "."+namespace+clusterDomain)
		if isOwn && hasPort && err == nil && number > 0 && number <= math.MaxUint16 && name != "" {
			found = append(found, Destination{Service: name, Port: int32(number)})
		}
	}
	return found
}

// ReadSelector reads the Pod selector of a Gateway.
func ReadSelector(gateway *unstructured.Unstructured) map[string]string {
	selector, _, err := unstructured.NestedStringMap(gateway.Object, "spec", "selector")
	if err != nil {
		return nil // selects no Pods
	}
	return selector
}

// fromGateways allows traffic from Gateways to the ports that VirtualServices expose through them.
func (b *builder) fromGateways() {
	ports := map[types.NamespacedName]map[int32]bool{}
	for _, virtualService := range b.input.VirtualServices {
		for _, destination := range virtualService.Destinations {
			if virtualService.Namespace != b.service.Namespace || destination.Service != b.service.Name {
				continue
			}
			for _, gateway := range virtualService.Gateways {
				if ports[gateway] == nil {
					ports[gateway] = map[int32]bool{}
				}
				ports[gateway][destination.Port] = true
			}
		}
	}
	byName := func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) }
	var usable []types.NamespacedName
	for _, name := range slices.SortedFunc(maps.Keys(ports), byName) {
		switch gateway, found := b.input.Gateways[name]; {
		case !found:
			b.complainOnce(ReasonGateway, "Gateway %s, referenced by a VirtualService, does not exist.", name)
		case len(gateway.Selector) == 0:
			b.complainOnce(ReasonGateway, "Gateway %s has no selector and would select all Pods: add a selector.", name)
		default:
			usable = append(usable, name)
		}
	}
	// The order is that of the selectors. Which policy gets the name without a hash does not depend on the names of
	// Gateways.
	slices.SortStableFunc(usable, func(x, y types.NamespacedName) int {
		return cmp.Compare(textOf(b.selectorOf(x)), textOf(b.selectorOf(y)))
	})
	for _, name := range usable {
		for _, port := range b.servicePorts {
			if ports[name][port.number] {
				b.fromGateway(b.input.Gateways[name], b.selectorOf(name), port.target)
			}
		}
	}
}

func (b *builder) selectorOf(gateway types.NamespacedName) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: b.input.Gateways[gateway].Selector}
}

func (b *builder) fromGateway(gateway Gateway, selector metav1.LabelSelector, port Port) {
	for _, namespace := range slices.Sorted(slices.Values(gateway.Namespaces)) {
		if !b.lives(namespace) {
			continue
		}
		ingressSuffix := "-from-" + namespace
		if namespace == b.service.Namespace {
			ingressSuffix = suffixIstio
		}
		b.allow(port, port.id(b.service.Name), Pods{Namespace: namespace, Selector: selector}, ingressSuffix, suffixIstio)
	}
}
