package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-k8s/trellis/pkg/metrics"
	"github.com/trellis-k8s/trellis/pkg/ownedobject"
)

// NewMetrics returns the counter of writes, registered with a registry.
func NewMetrics(registry prometheus.Registerer) *metrics.Counter {
	return metrics.NewCounter(registry, "istio_cluster_configuration_changes_total",
		"Writes of EnvoyFilters for Istio's ingress gateways. change: created, updated, deleted, failed.",
		"change").StartAtZero(ownedobject.Results()...)
}
