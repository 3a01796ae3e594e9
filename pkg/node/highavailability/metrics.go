package highavailability

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/trellis-k8s/trellis/pkg/metrics"
)

// Values of the labels.
const (
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	resultPatched   = "patched"
	resultFailed    = "failed"
)

// NewMetrics returns the counter of patches, registered with a registry.
func NewMetrics(registry prometheus.Registerer) *metrics.Counter {
	patches := metrics.NewCounter(registry, "high_availability_patches_total",
		"Empty patches of workloads after the second node was added or removed. kind: Deployment, StatefulSet. result: patched, "+
			"failed.", "kind", "result")
	for _, kind := range []string{kindDeployment, kindStatefulSet} {
		patches.Add(0, kind, resultPatched)
		patches.Add(0, kind, resultFailed)
	}
	return patches
}

func resultOf(err error) string {
	if client.IgnoreNotFound(err) != nil {
		return resultFailed
	}
	return resultPatched
}

func kindOf(obj client.Object) string {
	if _, ok := obj.(*appsv1.Deployment); ok {
		return kindDeployment
	}
	return kindStatefulSet
}
