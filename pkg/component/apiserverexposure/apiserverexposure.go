// Package apiserverexposure contains the objects in the namespace of a control plane through which shared gateways forward
// connections to its API server. Clients name the API server in the TLS handshake, and gateways do not decrypt connections: a
// client certificate, a token or a header concerns only the API server whose name the client sends, and only if its
// certificate authorities accept it.
package apiserverexposure

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/exposure"
)

// GatewayName is the name of the Gateway of the Gateway API in each namespace of a gateway, and ListenerName that of its listener.
const (
	GatewayName  = "kube-apiservers"
	ListenerName = "tls"
)

// port is the port of gateways, and of the Service of the API server.
const port = 443

// Values are the inputs of the component.
type Values struct {
	// Namespace of the control plane. Service is the name of the API server's Service, or empty for that of a shoot.
	Namespace, Service string
	// Port is the port of the Service, or 0 for that of an API server. Something else that clients reach by a name of its own has another one.
	Port int64
	Mode exposure.Mode
	// Hosts are the names that clients send in the TLS handshake.
	Hosts []string
	// Gateways forward connections. The first one is where DNS records should point to. The others are still used.
	Gateways []exposure.Gateway
}

// Objects returns the objects for the mode of the gateways.
func Objects(values Values) ([]client.Object, error) {
	if values.Service == "" {
		values.Service = kubeapiserver.Name
	}
	if values.Port == 0 {
		values.Port = port
	}
	switch {
	case len(values.Hosts) == 0 || len(values.Gateways) == 0:
		return nil, fmt.Errorf("expose the API server in namespace %s: it needs host names and a gateway", values.Namespace)
	case values.Mode == exposure.Istio:
		return values.istio(), nil
	case values.Mode == exposure.GatewayAPI:
		return []client.Object{values.route()}, nil
	}
	return nil, fmt.Errorf("expose the API server in namespace %s: mode %s has no gateways", values.Namespace, values.Mode)
}

// object returns an object of a kind that other projects define.
func (v Values) object(version, kind, name string, spec map[string]any) *unstructured.Unstructured {
	labels := map[string]any{}
	for key, value := range kubeapiserver.Labels() {
		labels[key] = value
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": v.Namespace, "name": name, "labels": labels}, "spec": spec,
	}}
}

// list returns texts as a list in an unstructured object.
func list(texts ...string) []any {
	all := make([]any, 0, len(texts))
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}
