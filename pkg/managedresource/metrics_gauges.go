package managedresource

import (
	"iter"
	"maps"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/live"
)

// gauges are collected when they are asked for.
type gauges struct {
	metrics *Metrics
	sources atomic.Pointer[sources]
}

// sources is what gauges tell of, beside what the metrics keep.
type sources struct {
	view   *live.View
	fights *fights
	clock  clock.PassiveClock
}

var (
	objectsGauge = prometheus.NewDesc(metricsNamespace+"_objects",
		"Objects of all ManagedResources by the state in which the last reconcile left them. state: applied, waiting, "+
			"failed, deleting.", []string{"state"}, nil)
	inventoryGauge = prometheus.NewDesc(metricsNamespace+"_inventory_largest_objects",
		"Number of objects of the largest ManagedResource.", nil, nil)
	contestedGauge = prometheus.NewDesc(metricsNamespace+"_contested_objects",
		"Objects that somebody else changes again and again, so that they are put back ever more slowly.", nil, nil)
	watchesGauge = prometheus.NewDesc(metricsNamespace+"_live_watches",
		"Kinds that are watched in the target cluster. state: watching, starting, failing, impossible.", []string{"state"}, nil)
	watchedGauge = prometheus.NewDesc(metricsNamespace+"_live_objects",
		"Objects that the watches show.", []string{"group", "kind"}, nil)
	// ownObjectsGauge and ownCorrections have one label for namespace and name: a label "namespace" is that of the process.
	ownObjectsGauge = prometheus.NewDesc(metricsNamespace+"_managed_resource_objects",
		"Objects of one ManagedResource (namespace/name) by the state in which its last reconcile left them; states without "+
			"objects are left out. state: applied, waiting, failed, deleting.", []string{"managed_resource", "state"}, nil)
	ownCorrections = prometheus.NewDesc(metricsNamespace+"_managed_resource_corrections_total",
		"Objects of one ManagedResource (namespace/name) that were put back; those of which none was are left out.", []string{"managed_resource"}, nil)
)

// objectStates are how many objects of one ManagedResource are in which state. There is one for each ManagedResource, so it is no map.
type objectStates struct{ applied, failed, waiting, deleting int }

// byName returns the states by the names that metrics have for them.
func (s objectStates) byName() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		_ = yield("applied", s.applied) && yield("failed", s.failed) && yield("waiting", s.waiting) && yield("deleting", s.deleting)
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{
		objectsGauge, inventoryGauge, contestedGauge, watchesGauge, watchedGauge, ownObjectsGauge, ownCorrections,
	} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(metrics chan<- prometheus.Metric) {
	from := g.sources.Load()
	if from == nil {
		return
	}
	gauge := func(description *prometheus.Desc, value int, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(value), labels...)
	}
	states, largest := g.metrics.sum()
	for state, count := range states {
		gauge(objectsGauge, count, state)
	}
	gauge(inventoryGauge, largest)
	gauge(contestedGauge, from.fights.count(from.clock.Now()))
	counts := from.view.Counts()
	for state, count := range counts.Watches {
		gauge(watchesGauge, count, state)
	}
	for gk, count := range counts.Objects {
		gauge(watchedGauge, count, gk.Group, gk.Kind)
	}
	g.metrics.eachOne(metrics)
}

// sum returns the objects in each state, and how many the largest ManagedResource has.
func (m *Metrics) sum() (states map[string]int, largest int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	states = maps.Collect(objectStates{}.byName())
	for _, counts := range m.states {
		all := 0
		for state, count := range counts.byName() {
			states[state] += count
			all += count
		}
		largest = max(largest, all)
	}
	return states, largest
}

// eachOne tells of every ManagedResource by itself. What most have none of is left out: objects that are not applied, and
// objects that were put back.
func (m *Metrics) eachOne(metrics chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for owner, counts := range m.states {
		for state, count := range counts.byName() {
			if count > 0 || state == "applied" {
				metrics <- prometheus.MustNewConstMetric(ownObjectsGauge, prometheus.GaugeValue, float64(count), owner.String(), state)
			}
		}
	}
	for owner, count := range m.corrections {
		metrics <- prometheus.MustNewConstMetric(ownCorrections, prometheus.CounterValue, float64(count), owner.String())
	}
}
