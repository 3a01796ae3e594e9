package nodeagentauthorizer

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-k8s/trellis/pkg/metrics"
)

// failed is the decision in metrics if an error occurred.
const failed = "error"

// Metrics are the metrics of the authorizer. The zero value counts nothing.
type Metrics struct {
	decisions *metrics.Counter
	reads     *metrics.Counter
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) Metrics {
	return Metrics{
		decisions: metrics.NewCounter(registry, "node_agent_authorizer_decisions_total",
			"Requests decided by the authorizer of node agents. decision: allowed, denied, no_opinion, error.", "decision").
			StartAtZero(string(allowed), string(denied), string(noOpinion), failed),
		reads: metrics.NewCounter(registry, "node_agent_authorizer_reads_total",
			"API server reads by the authorizer of node agents. kind: Machine, Node, Secret (metadata), configuration (a whole Secret), Pod, "+
				"CertificateSigningRequest.", "kind"),
	}
}
