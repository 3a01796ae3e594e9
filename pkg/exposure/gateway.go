package exposure

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// The labels of the Pods of gateways, as in Gardener.
const (
	LabelApp        = "app"
	GatewayApp      = constants.IstioIngressGatewayName
	labelIstio      = "istio"
	labelIstioRole  = "istio-role"
	istioRoleSeed   = "seed"
	istioDefault    = "ingressgateway"
	zoneInfix       = "--zone--"
	zoneInNamespace = "--"
	// zoneHash is the number of hexadecimal digits of a zone whose name cannot be part of the name of a namespace.
	zoneHash = 5
)

// Gateway is a set of Pods behind a Service of type LoadBalancer, which forward connections to API servers.
type Gateway struct {
	// Namespace of the gateway, and the name of its Service.
	Namespace, Service string
	// Labels of its Pods.
	Labels map[string]string
	// Handler is the name of the handler of ExposureClasses, or empty for the default gateway.
	Handler string
	// Zone is the only zone of a zonal gateway, or empty. Zones are the zones of the Pods, or empty if the Seed has none.
	Zone  string
	Zones []string
	// Balancer are the settings of the Service.
	Balancer Balancer
}

// Balancer are the settings of a Service of type LoadBalancer.
type Balancer struct {
	Annotations map[string]string
	// Class is the load balancer class, or nil for the default of the cluster.
	Class *string
	// TrafficPolicy is the external traffic policy, or empty for the default of Kubernetes.
	TrafficPolicy corev1.ServiceExternalTrafficPolicy
	// IP is the requested address, or empty.
	IP string
	// ProxyProtocol is set if the load balancer may send the header of the PROXY protocol.
	ProxyProtocol bool
}

// Gateways returns all gateways of a Seed: the default one first, then those of handlers, each followed by its zonal ones.
// Config has defaults applied.
func Gateways(seed *corev1beta1.Seed, config *gardenletv1alpha1.GardenletConfiguration) []Gateway {
	all := withZones(seed, defaultGateway(seed, config))
	for i := range config.ExposureClassHandlers {
		all = append(all, withZones(seed, handlerGateway(seed, &config.ExposureClassHandlers[i]))...)
	}
	return all
}

// zonal reports whether control planes in a single zone use the gateway of that zone.
func zonal(seed *corev1beta1.Seed) bool {
	ingress := balancerSettings(seed).ZonalIngress
	return len(seed.Spec.Provider.Zones) > 1 && (ingress == nil || ptr.Deref(ingress.Enabled, true))
}

func balancerSettings(seed *corev1beta1.Seed) corev1beta1.SeedSettingLoadBalancerServices {
	settings := ptr.Deref(seed.Spec.Settings, corev1beta1.SeedSettings{})
	return ptr.Deref(settings.LoadBalancerServices, corev1beta1.SeedSettingLoadBalancerServices{})
}

func withZones(seed *corev1beta1.Seed, base Gateway) []Gateway {
	all := []Gateway{base}
	if zonal(seed) {
		for _, zone := range seed.Spec.Provider.Zones {
			all = append(all, base.inZone(seed, zone))
		}
	}
	return all
}

func defaultGateway(seed *corev1beta1.Seed, config *gardenletv1alpha1.GardenletConfiguration) Gateway {
	return gatewayOf(seed, config.SNI, seedBalancer(seed, ""))
}

// handlerGateway returns the gateway of a handler. The settings of its Service override those of the Seed.
func handlerGateway(seed *corev1beta1.Seed, handler *gardenletv1alpha1.ExposureClassHandler) Gateway {
	gateway := gatewayOf(seed, handler.SNI, handlerBalancer(seedBalancer(seed, ""), handler))
	gateway.Handler = handler.Name
	gateway.Labels[constants.LabelGardenRole] = constants.RoleExposureClassHandler
	gateway.Labels[constants.LabelExposureClassHandlerName] = handler.Name
	return gateway
}

func handlerBalancer(balancer Balancer, handler *gardenletv1alpha1.ExposureClassHandler) Balancer {
	balancer.Annotations = merge(balancer.Annotations, handler.LoadBalancerService.Annotations)
	if class := handler.LoadBalancerService.Class; class != nil {
		balancer.Class = class
	}
	return balancer
}

func gatewayOf(seed *corev1beta1.Seed, sni *gardenletv1alpha1.SNI, balancer Balancer) Gateway {
	ingress := ptr.Deref(ptr.Deref(sni, gardenletv1alpha1.SNI{}).Ingress, gardenletv1alpha1.SNIIngress{})
	balancer.IP = ptr.Deref(ingress.ServiceExternalIP, "")
	gateway := Gateway{
		Namespace: ptr.Deref(ingress.Namespace, ""), Service: ptr.Deref(ingress.ServiceName, ""),
		Zones: seed.Spec.Provider.Zones, Balancer: balancer,
	}
	// The label app is mandatory: caches select the Services of gateways by it.
	gateway.Labels = merge(ingress.Labels, map[string]string{LabelApp: GatewayApp, labelIstioRole: istioRoleSeed})
	return gateway
}

// inZone returns the gateway of a zone.
func (g Gateway) inZone(seed *corev1beta1.Seed, zone string) Gateway {
	key := labelIstio
	if _, found := g.Labels[key]; !found && g.Labels[constants.LabelGardenRole] != "" {
		key = constants.LabelGardenRole
	}
	zonalOne := g
	zonalOne.Labels = merge(g.Labels, map[string]string{key: cmp.Or(g.Labels[key], istioDefault) + zoneInfix + zone})
	zonalOne.Namespace, zonalOne.Zone, zonalOne.Zones = zonalNamespace(g.Namespace, zone), zone, []string{zone}
	own := seedBalancer(seed, zone)
	if g.Handler != "" { // what the handler sets counts in all zones
		own.Annotations, own.Class = merge(own.Annotations, g.Balancer.Annotations), g.Balancer.Class
	}
	zonalOne.Balancer = own
	return zonalOne
}

// zonalNamespace returns the namespace of the gateway of a zone.
func zonalNamespace(base, zone string) string {
	name := base + zoneInNamespace + zone
	if len(name) <= validation.DNS1123LabelMaxLength && zone == strings.ToLower(zone) {
		return name
	}
	sum := sha256.Sum256([]byte(zone))
	return base + zoneInNamespace + hex.EncodeToString(sum[:])[:zoneHash]
}

// OwnSettings returns the settings of a Seed for the load balancer of one API server, which is kept while clients still use it.
func OwnSettings(seed *corev1beta1.Seed) Balancer { return seedBalancer(seed, "") }

// seedBalancer returns the settings of the Seed for load balancers, in a zone if one is given.
func seedBalancer(seed *corev1beta1.Seed, zone string) Balancer {
	settings := balancerSettings(seed)
	policy, protocol := settings.ExternalTrafficPolicy, settings.ProxyProtocol
	balancer := Balancer{Annotations: settings.Annotations, Class: settings.Class}
	for _, override := range settings.Zones {
		if override.Name != zone || zone == "" {
			continue
		}
		if len(override.Annotations) > 0 {
			balancer.Annotations = override.Annotations
		}
		policy, protocol = cmp.Or(override.ExternalTrafficPolicy, policy), cmp.Or(override.ProxyProtocol, protocol)
	}
	balancer.TrafficPolicy = ptr.Deref(policy, "")
	balancer.ProxyProtocol = ptr.Deref(protocol, corev1beta1.LoadBalancerServicesProxyProtocol{}).Allowed
	return balancer
}

// merge returns the union of maps. Later ones take precedence.
func merge(all ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, one := range all {
		maps.Copy(merged, one)
	}
	return merged
}
