package agentdelay

import "github.com/prometheus/client_golang/prometheus"

const metricsNamespace = "resource_manager"

// Metrics count delays. A nil *Metrics counts nothing.
type Metrics struct {
	nodes   prometheus.Gauge
	changes *prometheus.CounterVec
}

// Values of the label of changes.
const (
	resultChanged = "changed"
	resultFailed  = "failed"
)

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	metrics := &Metrics{
		nodes: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Name: "node_agent_delays",
			Help: "Nodes across which the reconciliation delays of node agents are spread.",
		}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "node_agent_delay_changes_total",
			Help: "Writes of reconciliation delays of node agents. result: changed, failed.",
		}, []string{"result"}),
	}
	for _, result := range []string{resultChanged, resultFailed} {
		metrics.changes.WithLabelValues(result)
	}
	registry.MustRegister(metrics.nodes, metrics.changes)
	return metrics
}

func (m *Metrics) spread(nodes, changed, failed int) {
	if m == nil {
		return
	}
	m.nodes.Set(float64(nodes))
	m.changes.WithLabelValues(resultChanged).Add(float64(changed))
	m.changes.WithLabelValues(resultFailed).Add(float64(failed))
}
