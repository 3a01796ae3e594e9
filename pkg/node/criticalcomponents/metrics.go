package criticalcomponents

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-k8s/trellis/pkg/metrics"
)

// Metrics are the metrics of the controller. The zero value records nothing.
type Metrics struct {
	waiting  *metrics.Gauge
	duration *metrics.Histogram
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) Metrics {
	return Metrics{
		waiting: metrics.NewGauge(registry, "nodes_waiting_for_critical_components",
			"Nodes with the taint "+Taint+" whose critical components are not ready."),
		duration: metrics.NewHistogram(registry, "node_critical_components_wait_duration_seconds",
			"Time in seconds from the first observation of the taint "+Taint+" on a node until its removal.",
			prometheus.ExponentialBuckets(1, 2, 12)),
	}
}
