package seed

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/gateway"
	"github.com/trellis-k8s/trellis/pkg/component/istio"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/inventory"
)

// The bundles of the gateways for API servers (Gardener).
const (
	bundleIstioControlPlane = inventory.Istio
	bundleIstio             = inventory.Gateways
	definitionsIstio        = inventory.IstioKinds
	bundleGateways          = "gateways"
	definitionsGatewayAPI   = prefixDefinitions + "gatewayapi"
)

// exposureParts returns the parts with the gateways, for the mode of the Seed.
func (in Inputs) exposureParts() []table.Part {
	mode, err := exposure.ModeOf(in.Seed)
	unknown := ""
	if err != nil {
		unknown = err.Error()
	}
	absent := func(of exposure.Mode) string {
		if err == nil && mode != of {
			return fmt.Sprintf("API servers are exposed by %s", mode)
		}
		return ""
	}
	// Gateways that Shoots still use are kept, and so is what they need, unless others with the same names take their place.
	unused := in.usedGateways != nil && len(in.usedGateways) == 0
	removed := func(of exposure.Mode) bool { return unused || mode.HasGateways() && mode != of }
	return []table.Part{
		{
			Name: definitionsIstio, Absent: absent(exposure.Istio), Objects: in.definitions(definitionsIstio), Unknown: unknown, Adjust: keepObjects,
			DeletedAfter: afterSystem,
		},
		{
			Name: bundleIstioControlPlane, Absent: absent(exposure.Istio), Removed: removed(exposure.Istio), Objects: in.istioControlPlane, Unknown: unknown,
			Needs: []table.Need{table.Applied(bundleSystem), table.Healthy(definitionsIstio)},
		},
		{
			Name: bundleIstio, Absent: absent(exposure.Istio), Removed: removed(exposure.Istio), Objects: in.istioGateways,
			Unknown: table.Join(unknown, in.lostGateways(exposure.Istio), in.present(bundleGateways)),
			Needs:   []table.Need{table.Healthy(bundleIstioControlPlane)},
		},
		{
			Name: definitionsGatewayAPI, Absent: absent(exposure.GatewayAPI), Objects: in.definitions(definitionsGatewayAPI), Unknown: unknown, Adjust: keepObjects,
			DeletedAfter: afterSystem,
		},
		{
			Name: bundleGateways, Absent: absent(exposure.GatewayAPI), Removed: removed(exposure.GatewayAPI), Objects: in.gatewayObjects,
			Unknown: table.Join(unknown, in.lostGateways(exposure.GatewayAPI), in.present(bundleIstio)),
			Needs:   []table.Need{table.Applied(bundleSystem), table.Healthy(definitionsGatewayAPI)},
		},
	}
}

// gateways returns the wanted gateways of the Seed.
func (in Inputs) gateways() []exposure.Gateway { return exposure.Gateways(in.Seed, in.Config) }

// lostGateways names gateways that Shoots still use, but that are not declared any more: a zone was removed, or a handler. The
// existing gateways are kept until no Shoot uses them.
func (in Inputs) lostGateways(of exposure.Mode) string {
	if mode, err := exposure.ModeOf(in.Seed); err != nil || mode != of {
		return ""
	}
	declared := map[string]bool{}
	for _, gateway := range in.gateways() {
		declared[gateway.Namespace] = true
	}
	lost := slices.DeleteFunc(slices.Clone(in.usedGateways), func(name string) bool { return declared[name] })
	if len(lost) == 0 {
		return ""
	}
	return "Shoots still use gateways that are not declared any more: " + strings.Join(lost, ", ")
}

// present returns why gateways cannot be created while those of a bundle exist: they have the same names.
func (in Inputs) present(bundle string) string {
	if slices.Contains(in.Emitted, in.key(bundle)) {
		return "the gateways of ManagedResource " + bundle + " are not deleted yet"
	}
	return ""
}

func (in Inputs) gatewayObjects() ([]client.Object, error) {
	image, err := in.image(gateway.Image)
	if err != nil {
		return nil, err
	}
	return gateway.Objects(gateway.Values{
		Gateways: in.gateways(), Image: image, DualStack: len(in.Seed.Spec.Networks.IPFamilies) > 1, VerticalPodAutoscaler: true, SingleNode: in.Nodes == 1,
	})
}

func (in Inputs) istioControlPlane() ([]client.Object, error) {
	image, err := in.image(istio.ImageControlPlane)
	if err != nil {
		return nil, err
	}
	return istio.ControlPlane(istio.ControlPlaneValues{Image: image, Zones: in.Seed.Spec.Provider.Zones, Replicas: in.replicas()})
}

func (in Inputs) istioGateways() ([]client.Object, error) {
	image, err := in.image(istio.ImageGateway)
	if err != nil {
		return nil, err
	}
	var objects []client.Object
	for _, gateway := range in.gateways() {
		of, err := istio.Gateway(istio.GatewayValues{
			Gateway: gateway, Image: image, DualStack: len(in.Seed.Spec.Networks.IPFamilies) > 1, VerticalPodAutoscaler: true, SingleNode: in.Nodes == 1,
		})
		if err != nil {
			return nil, fmt.Errorf("the gateway in namespace %s: %w", gateway.Namespace, err)
		}
		objects = append(objects, of...)
	}
	return objects, nil
}

// inactiveExposure returns the settings of the exposure that have no effect.
func inactiveExposure(seed *corev1beta1.Seed) []string {
	mode, err := exposure.ModeOf(seed)
	if err != nil || seed.Spec.Settings == nil || seed.Spec.Settings.LoadBalancerServices == nil {
		return nil
	}
	const path = "spec.settings.loadBalancerServices"
	switch mode {
	case exposure.ClusterIP:
		return []string{path + " (API servers are not exposed)"}
	case exposure.LoadBalancer:
		settings := seed.Spec.Settings.LoadBalancerServices
		if settings.ProxyProtocol != nil && settings.ProxyProtocol.Allowed {
			return []string{path + ".proxyProtocol (API servers do not understand it)"}
		}
	}
	return nil
}
