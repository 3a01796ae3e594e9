package controller

import (
	"iter"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/metrics"
)

// Metrics are the metrics of the controller. A nil *Metrics records nothing.
type Metrics struct {
	delay  *metrics.Histogram
	states *metrics.Gauge

	mu    sync.Mutex
	known map[types.NamespacedName]conditionStates
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		delay: metrics.NewHistogram(registry, "health_report_duration_seconds",
			"Time in seconds from the event that showed a change of an object's health until the conditions of its ManagedResource reported it.",
			prometheus.ExponentialBuckets(0.002, 3, 12)),
		states: metrics.NewGauge(registry, "managed_resources_health",
			"ManagedResources by the status of their health conditions, except those that are being applied or deleted, or are "+
				"ignored. condition: ResourcesHealthy, ResourcesProgressing. status: True, False, Unknown.", "condition", "status"),
		known: map[types.NamespacedName]conditionStates{},
	}
	registry.MustRegister(m)
	return m
}

// ownHealth has a single label for namespace and name, because scrapes set the label "namespace" to that of the
// process.
var ownHealth = prometheus.NewDesc("resource_manager_managed_resource_health",
	"1 for the current status of a health condition of one ManagedResource (namespace/name). ManagedResources that are being "+
		"applied or deleted, or are ignored, are left out. condition: ResourcesHealthy, ResourcesProgressing. status: True, False, "+
		"Unknown.", []string{"managed_resource", "condition", "status"}, nil)

// Describe implements prometheus.Collector for the metrics of each ManagedResource.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- ownHealth }

// Collect implements prometheus.Collector. The metrics are computed for each scrape and take no memory between scrapes.
func (m *Metrics) Collect(collected chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for owner, states := range m.known {
		for condition, status := range states.byType() {
			collected <- prometheus.MustNewConstMetric(ownHealth, prometheus.GaugeValue, 1, owner.String(), string(condition), string(status))
		}
	}
}

// concluded records the conditions of a ManagedResource. ChangedAt is the time of the first change that they report;
// zero if there was none.
func (m *Metrics) concluded(owner types.NamespacedName, healthy, progressing resourcesv1alpha1.ConditionStatus, changedAt, now time.Time) {
	if m == nil {
		return
	}
	if !changedAt.IsZero() {
		m.delay.Observe(now.Sub(changedAt))
	}
	m.replace(owner, conditionStates{healthy: healthy, progressing: progressing})
}

// forget removes a ManagedResource.
func (m *Metrics) forget(owner types.NamespacedName) {
	if m != nil {
		m.replace(owner, conditionStates{})
	}
}

// replace replaces the recorded states of a ManagedResource. The zero value removes them.
func (m *Metrics) replace(owner types.NamespacedName, states conditionStates) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[owner] == states {
		return
	}
	for condition, status := range m.known[owner].byType() {
		m.states.Add(-1, string(condition), string(status))
	}
	for condition, status := range states.byType() {
		m.states.Add(1, string(condition), string(status))
	}
	m.known[owner] = states
	if states == (conditionStates{}) {
		delete(m.known, owner)
	}
}

// conditionStates are the states of the conditions of one ManagedResource; empty if it has none. It is not a map,
// because there is one for each ManagedResource.
type conditionStates struct {
	healthy, progressing resourcesv1alpha1.ConditionStatus
}

// byType returns the non-empty states by condition.
func (s conditionStates) byType() iter.Seq2[resourcesv1alpha1.ConditionType, resourcesv1alpha1.ConditionStatus] {
	return func(yield func(resourcesv1alpha1.ConditionType, resourcesv1alpha1.ConditionStatus) bool) {
		_ = (s.healthy == "" || yield(resourcesv1alpha1.ResourcesHealthy, s.healthy)) &&
			(s.progressing == "" || yield(resourcesv1alpha1.ResourcesProgressing, s.progressing))
	}
}
