package garden

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// keepInZones makes clients of the Services of a bundle prefer Pods in their own zone, if the Garden has topology-aware routing. The operator of etcd
// does the same for the Services of its members.
func (in Inputs) keepInZones(bundle *flow.Bundle) {
	if routing := in.settings().TopologyAwareRouting; routing == nil || !routing.Enabled {
		return
	}
	for _, object := range bundle.Objects {
		switch object := object.(type) {
		case *corev1.Service:
			object.Spec.TrafficDistribution = ptr.To(corev1.ServiceTrafficDistributionPreferClose)
		case *druidv1alpha1.Etcd:
			if object.Spec.ETCD.ClientService == nil {
				object.Spec.ETCD.ClientService = &druidv1alpha1.ClientService{}
			}
			object.Spec.ETCD.ClientService.TrafficDistribution = ptr.To(corev1.ServiceTrafficDistributionPreferClose)
		case *unstructured.Unstructured:
			if spec, is := object.Object["spec"].(map[string]any); is && object.GetKind() == "Service" {
				spec["trafficDistribution"] = corev1.ServiceTrafficDistributionPreferClose
			}
		}
	}
}
