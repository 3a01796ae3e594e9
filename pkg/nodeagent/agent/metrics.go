package agent

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/identity"
)

const metricsNamespace = "node_agent"

// Metrics counts what the node agent does. It also knows whether the node agent is ready.
type Metrics struct {
	runs, failures *prometheus.CounterVec
	failing        *prometheus.GaugeVec
	appliedAt      prometheus.Gauge
	expires        prometheus.Gauge

	mu    sync.Mutex
	ready bool
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "controller_runs_total", Help: "Runs of a controller of the node agent.",
		}, []string{"controller"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "controller_errors_total", Help: "Runs of a controller of the node agent that failed.",
		}, []string{"controller"}),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Name: "controller_failing", Help: "1 if the last run of a controller of the node agent failed.",
		}, []string{"controller"}),
		appliedAt: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Name: "osc_applied_timestamp_seconds", Help: "When the node agent last applied an OperatingSystemConfig.",
		}),
		expires: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Name: "certificate_expiry_timestamp_seconds", Help: "When the certificate of the node agent expires.",
		}),
	}
	registry.MustRegister(m.runs, m.failures, m.failing, m.appliedAt, m.expires)
	return m
}

// Ran implements loop.Reporter.
func (m *Metrics) Ran(controller string, failed bool) {
	m.runs.WithLabelValues(controller).Inc()
	m.failing.WithLabelValues(controller).Set(0)
	if failed {
		m.failures.WithLabelValues(controller).Inc()
		m.failing.WithLabelValues(controller).Set(1)
	}
}

func (m *Metrics) applied(at time.Time) { m.appliedAt.Set(float64(at.Unix())) }

// identified records that the node agent has an identity.
func (m *Metrics) identified(connection *rest.Config) {
	if own, err := identity.Certificate(connection); err == nil {
		m.expires.Set(float64(own.NotAfter.Unix()))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = true
}

// Ready reports whether the node agent has an identity.
func (m *Metrics) Ready() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ready
}
