package garbagecollector

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-k8s/trellis/pkg/metrics"
)

// Metrics are the metrics of the collector. The zero value records nothing.
type Metrics struct {
	collected, failures           *metrics.Counter
	candidates, success, duration *metrics.Gauge
}

// Values of the label of failures.
const (
	failureList   = "list"
	failureDelete = "delete"
)

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) Metrics {
	return Metrics{
		collected: metrics.NewCounter(registry, "garbage_collected_total",
			"Objects that the garbage collector deleted. kind: ConfigMap, Secret.",
			"kind").StartAtZero(slices.Collect(maps.Values(kindNames))...),
		candidates: metrics.NewGauge(registry, "garbage_candidates",
			"Objects with the label of the garbage collector that its last run found. kind: ConfigMap, Secret.", "kind"),
		failures: metrics.NewCounter(registry, "garbage_collection_failures_total",
			"Runs of the garbage collector that ended because a list request failed, and objects that could not be deleted. "+
				"operation: list, delete.",
			"operation").StartAtZero(failureList, failureDelete),
		success: metrics.NewGauge(registry, "garbage_collection_last_success_timestamp_seconds",
			"Time of the last successful run of the garbage collector, as a Unix time in seconds; 0 before the first one."),
		duration: metrics.NewGauge(registry, "garbage_collection_last_duration_seconds",
			"Duration of the last run of the garbage collector in seconds, successful or not."),
	}
}

// observe updates the metrics after a run.
func (m Metrics) observe(result *report, err error, now time.Time, duration time.Duration) {
	for kind, count := range result.deleted {
		m.collected.Add(count, kind)
	}
	m.duration.Set(duration.Seconds())
	if result.listed {
		for _, kind := range kindNames {
			m.candidates.Set(float64(result.candidates[kind]), kind)
		}
	}
	m.failures.Add(len(result.failures), failureDelete)
	if result.listFailed {
		m.failures.Inc(failureList)
	}
	if err == nil {
		m.success.Set(float64(now.Unix()))
	}
}
