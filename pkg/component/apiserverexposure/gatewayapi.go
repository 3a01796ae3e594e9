package apiserverexposure

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// GatewayAPIGroup is the API group of the Gateway API, and gatewayAPIVersion its version.
const (
	GatewayAPIGroup   = "gateway.networking.k8s.io"
	gatewayAPIVersion = GatewayAPIGroup + "/v1"
)

// route returns the TLSRoute for gateways of the Gateway API. The listener of the gateways passes TLS connections through.
func (v Values) route() *unstructured.Unstructured {
	var parents []any
	for _, gateway := range v.Gateways {
		parents = append(parents, map[string]any{
			"group": GatewayAPIGroup, "kind": "Gateway", "namespace": gateway.Namespace, "name": GatewayName, "sectionName": ListenerName,
		})
	}
	return v.object(gatewayAPIVersion, "TLSRoute", v.Service, map[string]any{
		"parentRefs": parents, "hostnames": list(v.Hosts...),
		"rules": []any{map[string]any{"backendRefs": []any{map[string]any{
			"group": "", "kind": "Service", "name": v.Service, "port": v.Port, "weight": int64(1),
		}}}},
	})
}
