package apiserverexposure

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/exposure"
)

const istioVersion = "networking.istio.io/v1beta1"

// istio returns the objects for ingress gateways of Istio: a Gateway for each of them, and a VirtualService and a DestinationRule
// that only their namespaces see.
func (v Values) istio() []client.Object {
	var objects []client.Object
	var names, namespaces []string
	for i, gateway := range v.Gateways {
		name := v.Service
		if i > 0 {
			name += "-" + gateway.Namespace
		}
		names, namespaces = append(names, name), append(namespaces, gateway.Namespace)
		objects = append(objects, v.object(istioVersion, "Gateway", name, map[string]any{
			"selector": selectorOf(gateway),
			"servers": []any{map[string]any{
				"hosts": list(v.Hosts...), "port": map[string]any{"name": "tls", "number": int64(port), "protocol": "TLS"},
				"tls": map[string]any{"mode": "PASSTHROUGH"},
			}},
		}))
	}
	host := v.Service + "." + v.Namespace + ".svc.cluster.local"
	return append(objects,
		v.object(istioVersion, "VirtualService", v.Service, map[string]any{
			"exportTo": list(namespaces...), "hosts": list(v.Hosts...), "gateways": list(names...),
			"tls": []any{map[string]any{
				"match": []any{map[string]any{"port": int64(port), "sniHosts": list(v.Hosts...)}},
				"route": []any{map[string]any{"destination": map[string]any{"host": host, "port": map[string]any{"number": v.Port}}}},
			}},
		}),
		v.object(istioVersion, "DestinationRule", v.Service, map[string]any{
			"exportTo": list(namespaces...), "host": host, "trafficPolicy": map[string]any{
				"connectionPool": map[string]any{"tcp": map[string]any{
					"maxConnectionDuration": "86400s", "tcpKeepalive": map[string]any{"time": "7200s", "interval": "75s"},
				}},
				"loadBalancer": map[string]any{"localityLbSetting": map[string]any{
					"enabled": true, "failoverPriority": list("topology.kubernetes.io/zone"),
				}},
				// Without it, Istio ignores the locality. A gateway never leaves out all API servers.
				"outlierDetection": map[string]any{"minHealthPercent": int64(0)},
				"tls":              map[string]any{"mode": "DISABLE"},
			},
		}),
	)
}

func selectorOf(gateway exposure.Gateway) map[string]any {
	selector := map[string]any{}
	for key, value := range gateway.Labels {
		selector[key] = value
	}
	return selector
}
