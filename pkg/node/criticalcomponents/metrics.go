package criticalcomponents

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const metricsNamespace = "resource_manager"

// Metrics count nodes. A nil *Metrics counts nothing.
type Metrics struct {
	waiting  prometheus.Gauge
	duration prometheus.Histogram
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	metrics := &Metrics{
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Name: "nodes_waiting_for_critical_components",
			Help: "Nodes with the taint " + Taint + " whose critical components are not ready.",
		}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metricsNamespace, Name: "node_critical_components_wait_duration_seconds",
			Help:    "Time in seconds from the first observation of the taint " + Taint + " on a node until its removal.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 12),
		}),
	}
	registry.MustRegister(metrics.waiting, metrics.duration)
	return metrics
}

func (m *Metrics) wait(nodes int) {
	if m != nil {
		m.waiting.Set(float64(nodes))
	}
}

func (m *Metrics) released(after time.Duration) {
	if m != nil {
		m.duration.Observe(after.Seconds())
	}
}
