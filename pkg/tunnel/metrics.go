package tunnel

import "github.com/prometheus/client_golang/prometheus"

// Results of requests for a connection.
const (
	resultConnected = "connected"
	resultFailed    = "failed"
	resultNoAgent   = "no_agent"
)

// Metrics count what a server or an agent does.
type Metrics struct {
	peers, connections prometheus.Gauge
	requests           *prometheus.CounterVec
}

// NewMetrics registers the metrics of a server or an agent.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		peers: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "tunnel", Name: "peers", Help: "Connected agents of a server, or servers of an agent.",
		}),
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "tunnel", Name: "connections", Help: "Open connections of the API server through the tunnel.",
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "tunnel", Name: "requests_total", Help: "Requests of the API server for a connection, by result.",
		}, []string{"result"}),
	}
	for _, result := range []string{resultConnected, resultFailed, resultNoAgent} {
		m.requests.WithLabelValues(result)
	}
	registry.MustRegister(m.peers, m.connections, m.requests)
	return m
}
