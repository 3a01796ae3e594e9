package nodeagentauthorizer

import "github.com/prometheus/client_golang/prometheus"

const metricsNamespace = "resource_manager"

// failed is the decision in metrics if there was an error.
const failed = "error"

// Metrics count what the authorizer answers. A nil *Metrics counts nothing.
type Metrics struct {
	decisions *prometheus.CounterVec
	reads     *prometheus.CounterVec
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	metrics := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "node_agent_authorizer_decisions_total",
			Help: "Requests decided by the authorizer of node agents. decision: allowed, denied, no_opinion, error.",
		}, []string{"decision"}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "node_agent_authorizer_reads_total",
			Help: "API server reads by the authorizer of node agents. kind: Machine, Node, Secret (metadata), configuration (a whole Secret), Pod, " +
				"CertificateSigningRequest.",
		}, []string{"kind"}),
	}
	for _, decision := range []string{string(allowed), string(denied), string(noOpinion), failed} {
		metrics.decisions.WithLabelValues(decision)
	}
	registry.MustRegister(metrics.decisions, metrics.reads)
	return metrics
}

func (m *Metrics) answered(decision string) {
	if m != nil {
		m.decisions.WithLabelValues(decision).Inc()
	}
}

func (m *Metrics) readLive(kind string) {
	if m != nil {
		m.reads.WithLabelValues(kind).Inc()
	}
}
