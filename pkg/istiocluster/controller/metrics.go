package controller

import "github.com/prometheus/client_golang/prometheus"

// Metrics count what the controller does. A nil *Metrics counts nothing.
type Metrics struct {
	changes *prometheus.CounterVec
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	metrics := &Metrics{changes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "resource_manager", Name: "istio_cluster_configuration_changes_total",
		Help: "Writes of EnvoyFilters for Istio's ingress gateways. change: created, updated, " +
			"deleted, failed.",
	}, []string{"change"})}
	for _, change := range []string{"created", "updated", "deleted", "failed"} {
		metrics.changes.WithLabelValues(change)
	}
	registry.MustRegister(metrics.changes)
	return metrics
}

func (m *Metrics) wrote(change string) {
	if m != nil {
		m.changes.WithLabelValues(change).Inc()
	}
}
