package exposure

import (
	"fmt"
	"slices"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// Inputs are what decides how an API server is exposed.
type Inputs struct {
	Seed *corev1beta1.Seed
	// Config is the configuration of gardenlet with defaults applied.
	Config *gardenletv1alpha1.GardenletConfiguration
	// Class is the ExposureClass of the Shoot, or nil if it has none.
	Class *corev1beta1.ExposureClass
	// Zones are the zones of the control plane.
	Zones []string
	// Hosts are the names at which clients outside of the seed reach the API server, the internal one first. It may be empty.
	Hosts []string
}

// Exposure is how one API server is exposed.
type Exposure struct {
	Mode Mode
	// Hosts are the names that clients send in the TLS handshake. A gateway forwards a connection by it, and does not decrypt it.
	Hosts []string
	// Gateway is the gateway of the API server. It is nil if the mode has no gateways, or if there are no Hosts.
	Gateway *Gateway
	// Balancer are the settings of the Service of the API server if it has a load balancer of its own, or else nil.
	Balancer *Balancer
}

// Of returns how an API server is exposed. The error names the field that must be changed.
func Of(in Inputs) (Exposure, error) {
	mode, err := ModeOf(in.Seed)
	if err != nil {
		return Exposure{}, err
	}
	exposed := Exposure{Mode: mode, Hosts: in.Hosts}
	if mode == ClusterIP {
		if in.Class != nil {
			return exposed, fmt.Errorf("spec.exposureClassName: Seed %s does not expose API servers (exposure %s), so ExposureClass %s has no effect",
				in.Seed.Name, mode, in.Class.Name)
		}
		return exposed, nil
	}
	zone := pinned(in)
	var handler *gardenletv1alpha1.ExposureClassHandler
	if in.Class != nil {
		if handler, err = handlerOf(in); err != nil {
			return exposed, err
		}
	}
	if mode == LoadBalancer {
		balancer := seedBalancer(in.Seed, zone)
		if handler != nil {
			balancer = handlerBalancer(balancer, handler)
		}
		exposed.Balancer = &balancer
		return exposed, nil
	}
	if len(in.Hosts) > 0 {
		gateway := defaultGateway(in.Seed, in.Config)
		if handler != nil {
			gateway = handlerGateway(in.Seed, handler)
		}
		if zone != "" {
			gateway = gateway.inZone(in.Seed, zone)
		}
		exposed.Gateway = &gateway
	}
	return exposed, nil
}

// pinned returns the zone whose gateway serves a control plane, or empty: the only zone of the control plane if the Seed has
// gateways for its zones.
func pinned(in Inputs) string {
	if zonal(in.Seed) && len(in.Zones) == 1 && slices.Contains(in.Seed.Spec.Provider.Zones, in.Zones[0]) {
		return in.Zones[0]
	}
	return ""
}

// handlerOf returns the handler of the ExposureClass. Without it, the API server must not be exposed at all: the default
// gateway may be reachable from networks that the class excludes.
func handlerOf(in Inputs) (*gardenletv1alpha1.ExposureClassHandler, error) {
	for i := range in.Config.ExposureClassHandlers {
		if handler := &in.Config.ExposureClassHandlers[i]; handler.Name == in.Class.Handler {
			return handler, nil
		}
	}
	return nil, fmt.Errorf("spec.exposureClassName: ExposureClass %s needs the handler %s, which the gardenlet of Seed %s does not have in exposureClassHandlers",
		in.Class.Name, in.Class.Handler, in.Seed.Name)
}
