package managedresource

import (
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fight"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/metrics"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// maxManagers limits the number of field managers that metrics name, because clients choose these names.
const maxManagers = 100

// Metrics are the metrics of the controller. A nil *Metrics records nothing.
type Metrics struct {
	duration   *metrics.Histogram
	changes    *metrics.Counter
	drift      *metrics.Counter
	correction *metrics.Counter
	delay      *metrics.Histogram

	gauges *gauges

	mu          sync.Mutex
	states      map[types.NamespacedName]objectStates
	corrections map[types.NamespacedName]int
	managers    map[string]bool
}

// NewMetrics returns metrics and registers them with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		duration: metrics.NewHistogram(registry, "reconcile_duration_seconds",
			"Duration of reconciles by outcome, which is that of ResourcesApplied or an error. outcome: applied, progressing, failed, error.",
			prometheus.ExponentialBuckets(0.0001, 4, 11), "outcome"),
		changes: metrics.NewCounter(registry, "object_changes_total",
			"Decisions about objects by result. Reconciles without any change are not counted. change: "+
				"created, updated, unchanged, skipped, pruned, released, waiting, conflict, failed.", "change"),
		drift: metrics.NewCounter(registry, "drift_detected_total",
			"Objects that another client had changed or deleted; manager is the field manager that wrote last, empty after a "+
				"deletion, other beyond a hundred managers.", "group", "kind", "manager"),
		correction: metrics.NewCounter(registry, "drift_corrected_total",
			"Objects that another client had changed or deleted, and that were corrected; manager as in resource_manager_drift_detected_total.",
			"group", "kind", "manager"),
		delay: metrics.NewHistogram(registry, "drift_correction_duration_seconds",
			"Time from the event that showed a change by another client until the object was corrected.",
			prometheus.ExponentialBuckets(0.002, 3, 12)),
		states:      map[types.NamespacedName]objectStates{},
		corrections: map[types.NamespacedName]int{},
		managers:    map[string]bool{},
	}
	m.gauges = &gauges{metrics: m}
	registry.MustRegister(m.gauges)
	return m
}

// observe sets the sources of the gauges. Without them, the gauges have no values.
func (m *Metrics) observe(view *live.View, fights *fight.Detector[object.Key], clk clock.PassiveClock) {
	if m != nil {
		m.gauges.sources.Store(&sources{view: view, fights: fights, clock: clk})
	}
}

func (m *Metrics) reconciled(outcome string, took time.Duration) {
	if m != nil {
		m.duration.Observe(took, outcome)
	}
}

// detected counts the decisions that are caused by drift.
func (m *Metrics) detected(changes []change) {
	for _, change := range changes {
		if m != nil && change.drift {
			m.drift.Inc(change.Group, change.Kind, m.name(change.observation.Writer))
		}
	}
}

// corrected counts the correction of an object of a ManagedResource.
func (m *Metrics) corrected(owner types.NamespacedName, change *change, now time.Time) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.corrections[owner]++
	m.mu.Unlock()
	m.correction.Inc(change.Group, change.Kind, m.name(change.observation.Writer))
	if seen := change.observation.Seen; seen != 0 {
		m.delay.Observe(now.Sub(time.Unix(0, seen)))
	}
}

// name returns the label value for a field manager. It is "other" if there are too many managers.
func (m *Metrics) name(manager string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.managers[manager] && len(m.managers) >= maxManagers {
		return "other"
	}
	m.managers[manager] = true
	return manager
}

// concluded counts the changes of a pass, and replaces the object states of a ManagedResource.
func (m *Metrics) concluded(owner types.NamespacedName, changes []change, tally tally) {
	if m == nil {
		return
	}
	states := objectStates{
		failed:  len(tally.failed) + len(tally.unreleased) + len(tally.undeletable),
		waiting: len(tally.waiting) + len(tally.handedOver) + len(tally.held), deleting: len(tally.pending),
	}
	for _, change := range changes {
		m.changes.Inc(outcomeOf(change))
		if change.manifest == nil || change.err != nil {
			continue
		}
		switch {
		case change.action == actionHold: // counted above
		case change.action != actionWait:
			states.applied++
		case change.fight.Active(): // not in tally.waiting
			states.waiting++
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states[owner] = states
}

// settled records that all objects of a ManagedResource are unchanged since they were applied.
func (m *Metrics) settled(owner types.NamespacedName, objects int) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.states[owner] = objectStates{applied: objects}
	}
}

// forget removes the metrics of a ManagedResource.
func (m *Metrics) forget(owner types.NamespacedName) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.states, owner)
		delete(m.corrections, owner)
	}
}

// outcomeOfReconcile returns the outcome label of a reconcile: "error", or a word for the status of ResourcesApplied.
func outcomeOfReconcile(mr *resourcesv1alpha1.ManagedResource, err error) string {
	applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	switch {
	case err != nil:
		return "error"
	case applied.Status == resourcesv1alpha1.ConditionTrue:
		return "applied"
	case applied.Status == resourcesv1alpha1.ConditionFalse:
		return "failed"
	}
	return "progressing"
}

// outcomeOf returns the change label of a change.
func outcomeOf(change change) string {
	switch {
	case change.action == actionConflict:
		return "conflict"
	case change.err != nil:
		return "failed"
	}
	switch change.action {
	case actionCreate:
		return "created"
	case actionApply:
		if change.unchanged {
			return "unchanged"
		}
		return "updated"
	case actionDelete, actionForget:
		return "pruned"
	case actionRelease:
		return "released"
	case actionWait, actionHold, actionHandOver:
		return "waiting"
	}
	return "skipped"
}

// gauges computes its metrics when they are collected.
type gauges struct {
	metrics *Metrics
	sources atomic.Pointer[sources]
}

// sources are the sources of the gauges in addition to the state in Metrics.
type sources struct {
	view   *live.View
	fights *fight.Detector[object.Key]
	clock  clock.PassiveClock
}

var (
	objectsGauge = prometheus.NewDesc("resource_manager_objects",
		"Objects of all ManagedResources by the state in which the last reconcile left them. state: applied, waiting, "+
			"failed, deleting.", []string{"state"}, nil)
	inventoryGauge = prometheus.NewDesc("resource_manager_inventory_largest_objects",
		"Number of objects of the largest ManagedResource.", nil, nil)
	contestedGauge = prometheus.NewDesc("resource_manager_contested_objects",
		"Objects that another client keeps changing, so that corrections are delayed.", nil, nil)
	watchesGauge = prometheus.NewDesc("resource_manager_live_watches",
		"Kinds that are watched in the target cluster. state: watching, starting, failing, impossible.", []string{"state"}, nil)
	watchedGauge = prometheus.NewDesc("resource_manager_live_objects",
		"Objects that the watches show.", []string{"group", "kind"}, nil)
	// ownObjectsGauge and ownCorrections have one label for namespace and name, because a label "namespace" would be that
	// of the process.
	ownObjectsGauge = prometheus.NewDesc("resource_manager_managed_resource_objects",
		"Objects of one ManagedResource (namespace/name) by the state in which its last reconcile left them; states without "+
			"objects are left out. state: applied, waiting, failed, deleting.", []string{"managed_resource", "state"}, nil)
	ownCorrections = prometheus.NewDesc("resource_manager_managed_resource_corrections_total",
		"Objects of one ManagedResource (namespace/name) that were corrected; ManagedResources without any are left out.",
		[]string{"managed_resource"}, nil)
)

// objectStates contains the number of objects of one ManagedResource in each state. It is not a map to save memory.
type objectStates struct{ applied, failed, waiting, deleting int }

// byName returns the states by their label values.
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
func (g *gauges) Collect(collected chan<- prometheus.Metric) {
	from := g.sources.Load()
	if from == nil {
		return
	}
	gauge := func(description *prometheus.Desc, value int, labels ...string) {
		collected <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(value), labels...)
	}
	states, largest := g.metrics.sum()
	for state, count := range states {
		gauge(objectsGauge, count, state)
	}
	gauge(inventoryGauge, largest)
	gauge(contestedGauge, from.fights.Count(from.clock.Now()))
	counts := from.view.Counts()
	for state, count := range counts.Watches {
		gauge(watchesGauge, count, state)
	}
	for gk, count := range counts.Objects {
		gauge(watchedGauge, count, gk.Group, gk.Kind)
	}
	g.metrics.eachOne(collected)
}

// sum returns the number of objects in each state, and the number of objects of the largest ManagedResource.
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

// eachOne sends the metrics of every ManagedResource. It omits values that are zero for most ManagedResources: the
// states other than applied, and corrections.
func (m *Metrics) eachOne(collected chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for owner, counts := range m.states {
		for state, count := range counts.byName() {
			if count > 0 || state == "applied" {
				collected <- prometheus.MustNewConstMetric(ownObjectsGauge, prometheus.GaugeValue, float64(count), owner.String(), state)
			}
		}
	}
	for owner, count := range m.corrections {
		collected <- prometheus.MustNewConstMetric(ownCorrections, prometheus.CounterValue, float64(count), owner.String())
	}
}
