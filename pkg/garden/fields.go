package garden

import (
	"slices"

	"k8s.io/utils/ptr"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/exposure"
)

// refused returns the fields that this version does not support and cannot ignore: what they ask for would be missing without a sign.
func (in Inputs) refused() []string {
	var fields []string
	note := func(declared bool, field string) {
		if declared {
			fields = append(fields, field)
		}
	}
	virtual := in.virtual()
	note(virtual.Kubernetes.KubeAPIServer != nil && virtual.Kubernetes.KubeAPIServer.SNI != nil && in.sniSecret() == "", fieldServer+"sni without secretName")
	return fields
}

// Inactive returns the components and settings of a Garden that this version accepts but does not implement, by the paths of fields.
func Inactive(garden *operatorv1alpha1.Garden) []string {
	var inactive []string
	note := func(requested bool, what string) {
		if requested {
			inactive = append(inactive, what)
		}
	}
	runtimeCluster, virtual := &garden.Spec.RuntimeCluster, &garden.Spec.VirtualCluster
	settings := ptr.Deref(runtimeCluster.Settings, operatorv1alpha1.Settings{})
	gardener := virtual.Gardener
	note(true, "logging and monitoring")
	note(len(garden.Spec.Extensions) > 0, "spec.extensions")
	note(len(garden.Spec.Resources) > 0, "spec.resources")
	mode, err := exposure.ModeOfGarden(garden)
	note((err != nil || mode != exposure.Istio) && settings.LoadBalancerServices != nil && settings.LoadBalancerServices.ProxyProtocol != nil, "spec.runtimeCluster.settings.loadBalancerServices.proxyProtocol")
	note(settings.PersistentVolumeClaimAutoscaler != nil && settings.PersistentVolumeClaimAutoscaler.Enabled,
		"spec.runtimeCluster.settings.persistentVolumeClaimAutoscaler")
	note(gardener.GardenerAPIServer != nil && gardener.GardenerAPIServer.Logging != nil, fieldGardener+"logging")
	for _, each := range []struct {
		declared bool
		field    string
	}{
		{gardener.GardenerAPIServer != nil && len(gardener.GardenerAPIServer.FeatureGates) > 0, "gardenerAPIServer"},
		{gardener.GardenerControllerManager != nil && len(gardener.GardenerControllerManager.FeatureGates) > 0, "gardenerControllerManager"},
		{gardener.GardenerScheduler != nil && len(gardener.GardenerScheduler.FeatureGates) > 0, "gardenerScheduler"},
	} {
		note(each.declared, "spec.virtualCluster.gardener."+each.field+".featureGates: the program has none")
	}
	note(gardener.GardenerDashboard != nil, "spec.virtualCluster.gardener.gardenerDashboard")
	slices.Sort(inactive[1:])
	return inactive
}
