package highavailability

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1 "k8s.io/api/apps/v1"
)

const metricsNamespace = "resource_manager"

// Values of the labels.
const (
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	resultPatched   = "patched"
	resultFailed    = "failed"
)

// Metrics count patches. A nil *Metrics counts nothing.
type Metrics struct{ patches *prometheus.CounterVec }

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	metrics := &Metrics{patches: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "high_availability_patches_total",
		Help: "Empty patches of workloads after the second node was added or removed. kind: Deployment, StatefulSet. result: patched, " +
			"failed.",
	}, []string{"kind", "result"})}
	for _, kind := range []string{kindDeployment, kindStatefulSet} {
		for _, result := range []string{resultPatched, resultFailed} {
			metrics.patches.WithLabelValues(kind, result)
		}
	}
	registry.MustRegister(metrics.patches)
	return metrics
}

func (m *Metrics) patched(kind string, err error) {
	if m == nil {
		return
	}
	result := resultPatched
	if client.IgnoreNotFound(err) != nil {
		result = resultFailed
	}
	m.patches.WithLabelValues(kind, result).Inc()
}

func kindOf(obj client.Object) string {
	if _, ok := obj.(*appsv1.Deployment); ok {
		return kindDeployment
	}
	return kindStatefulSet
}
