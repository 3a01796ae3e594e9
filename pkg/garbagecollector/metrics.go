package garbagecollector

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const metricsNamespace = "resource_manager"

// Metrics count what the collector finds and does. A nil *Metrics counts nothing.
type Metrics struct {
	collected  *prometheus.CounterVec
	candidates *prometheus.GaugeVec
	failures   *prometheus.CounterVec
	success    prometheus.Gauge
	duration   prometheus.Gauge
}

// Values of the label of failures.
const (
	failureList   = "list"
	failureDelete = "delete"
)

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	metrics := &Metrics{
		collected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "garbage_collected_total",
			Help: "Objects that the garbage collector deleted. kind: ConfigMap, Secret.",
		}, []string{"kind"}),
		candidates: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Name: "garbage_candidates",
			Help: "Objects with the label of the garbage collector that its last run found. kind: ConfigMap, Secret.",
		}, []string{"kind"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "garbage_collection_failures_total",
			Help: "Runs of the garbage collector that ended because a list request failed, and objects that could not be deleted. operation: list, delete.",
		}, []string{"operation"}),
		success: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Name: "garbage_collection_last_success_timestamp_seconds",
			Help: "Time of the last successful run of the garbage collector, as a Unix time in seconds; 0 before the first one.",
		}),
		duration: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Name: "garbage_collection_last_duration_seconds",
			Help: "Duration of the last run of the garbage collector in seconds, successful or not.",
		}),
	}
	for _, kind := range kindNames {
		metrics.collected.WithLabelValues(kind)
	}
	for _, operation := range []string{failureList, failureDelete} {
		metrics.failures.WithLabelValues(operation)
	}
	registry.MustRegister(metrics.collected, metrics.candidates, metrics.failures, metrics.success, metrics.duration)
	return metrics
}

// ran takes in a run.
func (m *Metrics) ran(result *report, err error, now time.Time, duration time.Duration) {
	if m == nil {
		return
	}
	for kind, count := range result.deleted {
		m.collected.WithLabelValues(kind).Add(float64(count))
	}
	m.duration.Set(duration.Seconds())
	if result.listed {
		for _, kind := range kindNames {
			m.candidates.WithLabelValues(kind).Set(float64(result.candidates[kind]))
		}
	}
	m.failures.WithLabelValues(failureDelete).Add(float64(len(result.failures)))
	if result.listFailed {
		m.failures.WithLabelValues(failureList).Inc()
	}
	if err == nil {
		m.success.Set(float64(now.Unix()))
	}
}
