// Package exposure computes how clients outside of a seed reach the API servers of its control planes: through which
// gateways, at which host names, and with which settings of load balancers. All functions are pure. Two renderings, for
// Istio and for the Gateway API, and a Service of type LoadBalancer are made from the same model. See docs/exposure.md.
package exposure

import (
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Mode is how the API servers of a seed are exposed. It is the value of the annotation of the Seed.
type Mode string

// The modes.
const (
	// Istio shares ingress gateways of Istio, as in Gardener.
	Istio Mode = "Istio"
	// GatewayAPI shares gateways that implement the Gateway API of Kubernetes.
	GatewayAPI Mode = "GatewayAPI"
	// LoadBalancer gives each API server a load balancer.
	LoadBalancer Mode = "LoadBalancer"
	// ClusterIP does not expose API servers: clients reach them where the network of the seed's Services is reachable.
	ClusterIP Mode = "ClusterIP"
)

// Default is the mode of a Seed without the annotation.
const Default = ClusterIP

// Modes returns all modes.
func Modes() []Mode { return []Mode{Istio, GatewayAPI, LoadBalancer, ClusterIP} }

// HasGateways reports whether API servers share gateways.
func (m Mode) HasGateways() bool { return m == Istio || m == GatewayAPI }

// ModeOf returns the mode of a Seed. The error names the annotation.
func ModeOf(seed *corev1beta1.Seed) (Mode, error) {
	value, found := seed.Annotations[constants.AnnotationSeedExposure]
	if !found {
		return Default, nil
	}
	if mode := Mode(value); slices.Contains(Modes(), mode) {
		return mode, nil
	}
	var names []string
	for _, mode := range Modes() {
		names = append(names, string(mode))
	}
	return "", fmt.Errorf("metadata.annotations[%s] of Seed %s is %q: it must be one of %s",
		constants.AnnotationSeedExposure, seed.Name, value, strings.Join(names, ", "))
}
