package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-k8s/trellis/pkg/metrics"
	"github.com/trellis-k8s/trellis/pkg/ownedobject"
)

// Metrics are the metrics of the controller. The zero value records nothing.
type Metrics struct {
	changes  *metrics.Counter
	problems *metrics.Gauge
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) Metrics {
	return Metrics{
		changes: metrics.NewCounter(registry, "network_policy_changes_total",
			"Writes of NetworkPolicies. change: created, updated, deleted, failed.", "change").StartAtZero(ownedobject.Results()...),
		problems: metrics.NewGauge(registry, "network_policy_services_with_problems",
			"Services with invalid annotations or references for NetworkPolicies; their Events contain the reason."),
	}
}
