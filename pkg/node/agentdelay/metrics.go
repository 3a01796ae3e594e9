package agentdelay

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-k8s/trellis/pkg/metrics"
)

// Metrics are the metrics of the controller. The zero value records nothing.
type Metrics struct {
	nodes   *metrics.Gauge
	changes *metrics.Counter
}

// Values of the label of changes.
const (
	resultChanged = "changed"
	resultFailed  = "failed"
)

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) Metrics {
	return Metrics{
		nodes: metrics.NewGauge(registry, "node_agent_delays", "Nodes across which the reconciliation delays of node agents are spread."),
		changes: metrics.NewCounter(registry, "node_agent_delay_changes_total",
			"Writes of reconciliation delays of node agents. result: changed, failed.", "result").StartAtZero(resultChanged, resultFailed),
	}
}

func (m Metrics) spread(nodes, changed, failed int) {
	m.nodes.Set(float64(nodes))
	m.changes.Add(changed, resultChanged)
	m.changes.Add(failed, resultFailed)
}
