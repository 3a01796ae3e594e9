package istiocluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// clusterDomain is the suffix of Service host names in DestinationRules.
const clusterDomain = ".svc.cluster.local"

// Rule has the relevant fields of a DestinationRule of Istio.
type Rule struct {
	metav1.ObjectMeta
	// Service is the Service that the rule is for; empty if the host is not a Service.
	Service types.NamespacedName
	// Exports are the namespaces in which the rule is visible.
	Exports Exports
	// Mode applies to all ports without an entry in PortModes.
	Mode Mode
	// PortModes are the modes of single ports of the Service.
	PortModes map[int64]Mode
}

// Mode is the protocol between gateways and a Service. If it is empty, the port of the Service decides.
type Mode string

const (
	// HTTP2 always uses HTTP/2.
	HTTP2 Mode = "HTTP2"
	// Downstream uses the protocol of the client of the gateway.
	Downstream Mode = "Downstream"
)

// Exports are namespaces in which an object is visible: names, "*" for all, and "." for the object's own namespace.
type Exports []string

// include reports whether a namespace is included. Own is the namespace that "." stands for.
func (e Exports) include(namespace, own string) bool {
	return slices.ContainsFunc(e, func(one string) bool {
		return one == "*" || one == namespace || one == "." && namespace == own
	})
}

// Service has the relevant fields of a Service.
type Service struct {
	types.NamespacedName
	Exports Exports
	Ports   []Port
}

// Port is a port of a Service. HTTP2 is set if its name or application protocol indicates HTTP/2.
type Port struct {
	Number int32
	HTTP2  bool
}

// ReadRule reads a DestinationRule of networking.istio.io. It ignores fields that do not have the type in its
// definition. A rule for only some Pods of a Service, or for only some clients, gets no Service, because it applies to
// different Envoy clusters.
func ReadRule(object *unstructured.Unstructured) *Rule {
	rule := &Rule{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}}
	spec, _ := object.Object["spec"].(map[string]any)
	if isSet(spec["subsets"]) || isSet(spec["workloadSelector"]) {
		return rule
	}
	host, _ := spec["host"].(string)
	rule.Service = serviceOf(host, object.GetNamespace())
	for _, one := range listOf(spec["exportTo"]) {
		if name, isText := one.(string); isText {
			rule.Exports = append(rule.Exports, name)
		}
	}
	policy, _ := spec["trafficPolicy"].(map[string]any)
	rule.Mode = modeOf(policy)
	for _, one := range listOf(policy["portLevelSettings"]) {
		settings, _ := one.(map[string]any)
		number, found, err := unstructured.NestedInt64(settings, "port", "number")
		if mode := modeOf(settings); mode != "" && found && err == nil {
			if rule.PortModes == nil {
				rule.PortModes = map[int64]Mode{}
			}
			rule.PortModes[number] = mode
		}
	}
	return rule
}

// isSet reports whether a field has a value. An empty list counts as unset.
func isSet(value any) bool {
	list, isList := value.([]any)
	return value != nil && (!isList || len(list) > 0)
}

func listOf(value any) []any {
	list, _ := value.([]any)
	return list
}

// serviceOf returns the Service of a host; empty if the host is not a Service.
func serviceOf(host, namespace string) types.NamespacedName {
	if host != "" && !strings.ContainsAny(host, ".*") {
		return types.NamespacedName{Namespace: namespace, Name: host}
	}
	inCluster, found := strings.CutSuffix(host, clusterDomain)
	name, namespace, isPair := strings.Cut(inCluster, ".")
	if !found || !isPair || name == "" || namespace == "" || strings.ContainsAny(namespace, ".*") || strings.Contains(name, "*") {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// modeOf returns the protocol mode in traffic settings.
func modeOf(settings map[string]any) Mode {
	if settings == nil {
		return ""
	}
	if asClient, _, _ := unstructured.NestedBool(settings, "connectionPool", "http", "useClientProtocol"); asClient {
		return Downstream
	}
	if upgrade, _, _ := unstructured.NestedString(settings, "connectionPool", "http", "h2UpgradePolicy"); upgrade == "UPGRADE" {
		return HTTP2
	}
	return ""
}

// ReadService reads a Service.
func ReadService(service *corev1.Service) Service {
	result := Service{NamespacedName: types.NamespacedName{Namespace: service.Namespace, Name: service.Name}}
	for name := range strings.SplitSeq(service.Annotations[AnnotationExportTo], ",") {
		result.Exports = append(result.Exports, strings.TrimSpace(name))
	}
	for i := range service.Spec.Ports {
		result.Ports = append(result.Ports, Port{Number: service.Spec.Ports[i].Port, HTTP2: speaksHTTP2(&service.Spec.Ports[i])})
	}
	return result
}

func speaksHTTP2(port *corev1.ServicePort) bool {
	if port.AppProtocol != nil {
		protocol := strings.ToLower(*port.AppProtocol)
		return isHTTP2(protocol) || protocol == "kubernetes.io/h2c"
	}
	name, _, _ := strings.Cut(port.Name, "-")
	return isHTTP2(strings.ToLower(name))
}

func isHTTP2(protocol string) bool {
	return protocol == "http2" || protocol == "grpc" || protocol == "grpc-web"
}
