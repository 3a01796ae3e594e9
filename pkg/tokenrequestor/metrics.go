package tokenrequestor

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const metricsNamespace = "resource_manager"

// States of tokens in metrics.
const (
	stateValid   = "valid"
	stateFailing = "failing"
	stateExpired = "expired"
)

// Metrics count what the token requestor does. A nil *Metrics counts nothing.
type Metrics struct {
	renewals *prometheus.CounterVec
	failures *prometheus.CounterVec
	cleanups *prometheus.CounterVec
	// reconciler has the tokens; nil before there is one.
	reconciler atomic.Pointer[Reconciler]
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	metrics := &Metrics{
		renewals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "token_renewals_total",
			Help: "Token requests, by reason. reason: NoTimestamp, Due, NoToken, TargetMissing, BundleChanged, " +
				"ServiceAccountCreated, Rejected.",
		}, []string{"reason"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "token_failures_total",
			Help: "Failed reconciles of the token requestor. reason: the reasons of its Events, and RequestFailed.",
		}, []string{"reason"}),
		cleanups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "token_cleanups_total",
			Help: "Objects that cleanUp deleted in the target cluster. kind: ServiceAccount, Secret.",
		}, []string{"kind"}),
	}
	for _, reason := range []string{
		reasonNoTimestamp, reasonTargetMissing, reasonNoToken, reasonBundleChanged, reasonAccountCreated, reasonDue, reasonRejected,
	} {
		metrics.renewals.WithLabelValues(reason)
	}
	for _, reason := range []string{
		failureAnnotations, failureKubeconfig, failureNamespace, failureTarget, failureRefused, failureRejected, failureRequest,
	} {
		metrics.failures.WithLabelValues(reason)
	}
	for kind := range resources {
		metrics.cleanups.WithLabelValues(kind)
	}
	registry.MustRegister(metrics.renewals, metrics.failures, metrics.cleanups, metrics)
	return metrics
}

func (m *Metrics) renewed(reason string) {
	if m != nil {
		m.renewals.WithLabelValues(reason).Inc()
	}
}

func (m *Metrics) failed(reason string) {
	if m != nil {
		m.failures.WithLabelValues(reason).Inc()
	}
}

func (m *Metrics) cleanedUp(kind string) {
	if m != nil {
		m.cleanups.WithLabelValues(kind).Inc()
	}
}

// observe has the metrics show the tokens that a reconciler keeps.
func (m *Metrics) observe(r *Reconciler) {
	if m != nil {
		m.reconciler.Store(r)
	}
}

var (
	tokensGauge = prometheus.NewDesc(metricsNamespace+"_tokens",
		"Secrets of the token requestor: with a valid token, with a failed last reconcile, with an expired token. "+
			"state: valid, failing, expired.", []string{"state"}, nil)
	expiryGauge = prometheus.NewDesc(metricsNamespace+"_token_earliest_expiry_timestamp_seconds",
		"Earliest expiry of all tokens, as a Unix time in seconds; 0 if there are no tokens.", nil, nil)
)

// Describe implements prometheus.Collector, for what is read when it is asked for.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- tokensGauge
	descriptions <- expiryGauge
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	r := m.reconciler.Load()
	if r == nil {
		return
	}
	for _, state := range []string{stateValid, stateFailing, stateExpired} {
		count := r.memories.count(state, r.ServerClock.Now())
		metrics <- prometheus.MustNewConstMetric(tokensGauge, prometheus.GaugeValue, float64(count), state)
	}
	metrics <- prometheus.MustNewConstMetric(expiryGauge, prometheus.GaugeValue, float64(r.memories.earliest()))
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

// count returns how many tokens are in a state.
func (m *memories) count(state string, now time.Time) int {
	count := 0
	m.visit(func(known *memory) {
		if known.seen && known.state(now) == state {
			count++
		}
	})
	return count
}

// earliest returns the earliest expiry of all tokens in Unix time; 0 without tokens.
func (m *memories) earliest() int64 {
	var first int64
	m.visit(func(known *memory) {
		if known.seen && !known.expires.IsZero() && (first == 0 || known.expires.Unix() < first) {
			first = known.expires.Unix()
		}
	})
	return first
}
