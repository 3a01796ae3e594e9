package exposure

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

const (
	// DefaultOfGarden is the mode of a Garden without the annotation.
	DefaultOfGarden = LoadBalancer
	// GardenGatewayNamespace is the namespace of the gateway of the virtual garden (Gardener).
	GardenGatewayNamespace = constants.PrefixVirtualGarden + "istio-ingress"
)

// ModeOfGarden returns how the API server of a virtual garden is exposed. The error names the annotation.
func ModeOfGarden(garden metav1.Object) (Mode, error) {
	modes := []Mode{Istio, LoadBalancer, ClusterIP}
	value, found := garden.GetAnnotations()[constants.AnnotationGardenExposure]
	if !found {
		return DefaultOfGarden, nil
	}
	if mode := Mode(value); slices.Contains(modes, mode) {
		return mode, nil
	}
	var names []string
	for _, mode := range modes {
		names = append(names, string(mode))
	}
	return "", fmt.Errorf("metadata.annotations[%s] of Garden %s is %q: it must be one of %s",
		constants.AnnotationGardenExposure, garden.GetName(), value, strings.Join(names, ", "))
}

// BalancerOfGarden returns the settings of a Garden for load balancers.
func BalancerOfGarden(garden *operatorv1alpha1.Garden) Balancer {
	settings := ptr.Deref(garden.Spec.RuntimeCluster.Settings, operatorv1alpha1.Settings{})
	services := ptr.Deref(settings.LoadBalancerServices, operatorv1alpha1.SettingLoadBalancerServices{})
	return Balancer{
		Annotations: services.Annotations, TrafficPolicy: ptr.Deref(services.ExternalTrafficPolicy, ""),
		ProxyProtocol: services.ProxyProtocol != nil && services.ProxyProtocol.Allowed,
	}
}

// GatewayOfGarden returns the gateway through which clients reach the API server of the virtual garden. No control plane of a Shoot uses it.
func GatewayOfGarden(garden *operatorv1alpha1.Garden) Gateway {
	return Gateway{
		Namespace: GardenGatewayNamespace, Service: GatewayApp, Zones: garden.Spec.RuntimeCluster.Provider.Zones, Balancer: BalancerOfGarden(garden),
		Labels: map[string]string{LabelApp: GatewayApp, labelIstio: istioDefault, labelIstioRole: constants.RoleGarden},
	}
}
