package manifest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bookkeeping are annotations in which controllers of Kubernetes record their state. Objects that were read from a
// cluster have them. If they were applied, the controller and the resource-manager would overwrite each other.
var bookkeeping = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "Deployment"}: {"deployment.kubernetes.io/revision"},
	{Group: "apps", Kind: "ReplicaSet"}: {
		"deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history",
		"deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas",
	},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: {
		"autoscaling.alpha.kubernetes.io/conditions", "autoscaling.alpha.kubernetes.io/current-metrics",
	},
	{Kind: "Endpoints"}: {"endpoints.kubernetes.io/last-change-trigger-time"},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: {"endpoints.kubernetes.io/last-change-trigger-time"},
}

// dropBookkeeping removes the annotations of the controllers of a kind from the metadata of an object.
func dropBookkeeping(meta map[string]any, gk schema.GroupKind) {
	annotations, _ := meta["annotations"].(map[string]any)
	for _, key := range bookkeeping[gk] {
		delete(annotations, key)
	}
}
