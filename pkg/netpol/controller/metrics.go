package controller

import "github.com/prometheus/client_golang/prometheus"

const metricsNamespace = "resource_manager"

// Metrics count what the controller does. A nil *Metrics counts nothing.
type Metrics struct {
	changes  *prometheus.CounterVec
	problems prometheus.Gauge
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	metrics := &Metrics{
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "network_policy_changes_total",
			Help: "Writes of NetworkPolicies. change: created, updated, deleted, failed.",
		}, []string{"change"}),
		problems: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Name: "network_policy_services_with_problems",
			Help: "Services with invalid annotations or references for NetworkPolicies; their Events contain the reason.",
		}),
	}
	for _, change := range []string{"created", "updated", "deleted", "failed"} {
		metrics.changes.WithLabelValues(change)
	}
	registry.MustRegister(metrics.changes, metrics.problems)
	return metrics
}

func (m *Metrics) wrote(change string) {
	if m != nil {
		m.changes.WithLabelValues(change).Inc()
	}
}

func (m *Metrics) troubled(services int) {
	if m != nil {
		m.problems.Set(float64(services))
	}
}
