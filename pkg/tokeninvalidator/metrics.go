package tokeninvalidator

import "github.com/prometheus/client_golang/prometheus"

const metricsNamespace = "resource_manager"

// Metrics count what the controller does. A nil *Metrics counts nothing.
type Metrics struct {
	invalidations, restorations prometheus.Counter
	waiting                     *prometheus.GaugeVec
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	metrics := &Metrics{
		invalidations: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "static_tokens_invalidated_total",
			Help: "Secrets that the token invalidator labelled, so that the webhook invalidates their tokens.",
		}),
		restorations: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "static_tokens_restored_total",
			Help: "Secrets from which the token invalidator removed that label, so that their tokens become valid again.",
		}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Name: "static_tokens_blocked",
			Help: "Secrets whose tokens the token invalidator cannot change, by the reason of the Event. reason: TokenInUse, " +
				"SecretHasOtherPurpose, SecretChangeRefused.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{reasonInUse, reasonOtherPurpose, reasonRefused} {
		metrics.waiting.WithLabelValues(reason)
	}
	registry.MustRegister(metrics.invalidations, metrics.restorations, metrics.waiting)
	return metrics
}

func (m *Metrics) invalidated() {
	if m != nil {
		m.invalidations.Inc()
	}
}

func (m *Metrics) restored() {
	if m != nil {
		m.restorations.Inc()
	}
}

func (m *Metrics) blocked(reason string, more float64) {
	if m != nil {
		m.waiting.WithLabelValues(reason).Add(more)
	}
}
