package istio

import (
	"embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/exposure"
)

// files are the patches of EnvoyFilters, by their names.
//
//go:embed filters
var files embed.FS

// blackhole is a host that no client asks for, so that a listener exists although nothing is routed to it.
const blackhole = "non-existing-blackhole.garden.svc.cluster.local"

// envoyFilters returns the EnvoyFilters of a gateway.
func envoyFilters(gateway exposure.Gateway) ([]client.Object, error) {
	names := []string{"istio-ingressgateway", "http-proxy", "hsts", "misdirected-requests", "strip-trailing-dot"}
	if gateway.Balancer.ProxyProtocol {
		names = append(names, "proxy-protocol-http-proxy", "proxy-protocol-sni")
	}
	var objects []client.Object
	for _, name := range names {
		content, err := files.ReadFile("filters/" + name + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("read the EnvoyFilter %s: %w", name, err)
		}
		var patches []any
		if err := yaml.Unmarshal(content, &patches); err != nil {
			return nil, fmt.Errorf("read the EnvoyFilter %s: %w", name, err)
		}
		objects = append(objects, object(filterVersion, "EnvoyFilter", gateway.Namespace, name, map[string]any{
			"workloadSelector": map[string]any{"labels": texts(gateway.Labels)}, "configPatches": patches,
		}))
	}
	return objects, nil
}

// listeners returns the objects without which a gateway would not listen: on the port for CONNECT requests, and on the port for
// TLS connections while there is no Shoot.
func listeners(gateway exposure.Gateway) []client.Object {
	blackholes := func(port int64, name, protocol string) []any {
		return []any{map[string]any{"hosts": []any{blackhole}, "port": map[string]any{"name": name, "number": port, "protocol": protocol}}}
	}
	objects := []client.Object{object(version, "Gateway", gateway.Namespace, "http-proxy", map[string]any{
		"selector": texts(gateway.Labels), "servers": blackholes(portProxy, "http-proxy", "HTTP"),
	})}
	if gateway.Balancer.ProxyProtocol {
		objects = append(objects,
			object(version, "Gateway", gateway.Namespace, "proxy-protocol", map[string]any{
				"selector": texts(gateway.Labels), "servers": blackholes(portProxy, "tcp-proxy-protocol", "TCP"),
			}),
			object(version, "VirtualService", gateway.Namespace, "proxy-protocol-blackhole", map[string]any{
				"hosts": []any{blackhole}, "gateways": []any{"proxy-protocol"}, "exportTo": []any{"."}, "tcp": []any{map[string]any{
					"match": []any{map[string]any{"port": int64(portProxy)}},
					"route": []any{map[string]any{"destination": map[string]any{"host": "localhost", "port": map[string]any{"number": int64(9999)}}}},
				}},
			}),
		)
	}
	return objects
}

// readSecrets lets a gateway read the certificates in its own namespace.
func readSecrets() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{parts.Rule("", []string{"secrets"}, "get", "list", "watch")}
}
