package tokenrequestor

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-k8s/trellis/pkg/metrics"
)

// States of tokens in metrics.
const (
	stateValid   = "valid"
	stateFailing = "failing"
	stateExpired = "expired"
)

// Metrics are the metrics of the token requestor. A nil *Metrics records nothing.
type Metrics struct {
	renewals *metrics.Counter
	failures *metrics.Counter
	cleanups *metrics.Counter
	// reconciler provides the states of tokens; nil until observe is called.
	reconciler atomic.Pointer[Reconciler]
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		renewals: metrics.NewCounter(registry, "token_renewals_total",
			"Token requests, by reason. reason: NoTimestamp, Due, NoToken, TargetMissing, BundleChanged, ServiceAccountCreated, ServiceAccountReplaced, Rejected.",
			"reason").StartAtZero(
			reasonNoTimestamp, reasonTargetMissing, reasonNoToken, reasonBundleChanged, reasonAccountCreated, reasonAccountReplaced, reasonDue, reasonRejected),
		failures: metrics.NewCounter(registry, "token_failures_total",
			"Failed reconciles of the token requestor. reason: the reasons of its Events, and RequestFailed.", "reason").StartAtZero(
			failureAnnotations, failureKubeconfig, failureNamespace, failureTarget, failureRefused, failureRejected, failureRequest),
		cleanups: metrics.NewCounter(registry, "token_cleanups_total",
			"Objects that cleanUp deleted in the target cluster. kind: ServiceAccount, Secret.",
			"kind").StartAtZero(slices.Collect(maps.Keys(resources))...),
	}
	registry.MustRegister(m)
	return m
}

func (m *Metrics) renewed(reason string) {
	if m != nil {
		m.renewals.Inc(reason)
	}
}

func (m *Metrics) failed(reason string) {
	if m != nil {
		m.failures.Inc(reason)
	}
}

func (m *Metrics) cleanedUp(kind string) {
	if m != nil {
		m.cleanups.Inc(kind)
	}
}

// observe makes the metrics report the tokens of a reconciler.
func (m *Metrics) observe(r *Reconciler) {
	if m != nil {
		m.reconciler.Store(r)
	}
}

var (
	tokensGauge = prometheus.NewDesc("resource_manager_tokens",
		"Secrets of the token requestor: with a valid token, with a failed last reconcile, with an expired token. "+
			"state: valid, failing, expired.", []string{"state"}, nil)
	expiryGauge = prometheus.NewDesc("resource_manager_token_earliest_expiry_timestamp_seconds",
		"Earliest expiry of all tokens, as a Unix time in seconds; 0 if there are no tokens.", nil, nil)
)

// Describe implements prometheus.Collector for the metrics that are computed for each scrape.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- tokensGauge
	descriptions <- expiryGauge
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(collected chan<- prometheus.Metric) {
	r := m.reconciler.Load()
	if r == nil {
		return
	}
	for _, state := range []string{stateValid, stateFailing, stateExpired} {
		count := r.memories.count(state, r.ServerClock.Now())
		collected <- prometheus.MustNewConstMetric(tokensGauge, prometheus.GaugeValue, float64(count), state)
	}
	collected <- prometheus.MustNewConstMetric(expiryGauge, prometheus.GaugeValue, float64(r.memories.earliest()))
}

// state returns the state of a token at a time by the clock of the API server.
func (m *memory) state(now time.Time) string {
	switch {
	case !m.expires.IsZero() && !now.Before(m.expires):
		return stateExpired
	case m.failing:
		return stateFailing
	}
	return stateValid
}

// count returns the number of tokens in a state.
func (m *memories) count(state string, now time.Time) int {
	count := 0
	m.visit(func(known *memory) {
		if known.seen && known.state(now) == state {
			count++
		}
	})
	return count
}

// earliest returns the earliest expiry of all tokens in Unix time; 0 if there are none.
func (m *memories) earliest() int64 {
	var first int64
	m.visit(func(known *memory) {
		if known.seen && !known.expires.IsZero() && (first == 0 || known.expires.Unix() < first) {
			first = known.expires.Unix()
		}
	})
	return first
}
