package forward

import "github.com/prometheus/client_golang/prometheus"

// Results of connections.
const (
	resultForwarded   = "forwarded"
	resultInvalid     = "invalid"
	resultNoRoute     = "no_route"
	resultNoEndpoint  = "no_endpoint"
	resultUnreachable = "unreachable"
	resultLimit       = "limit"
)

// Directions of bytes, from the point of view of the destination.
const (
	directionIn  = "in"
	directionOut = "out"
)

// Metrics count connections.
type Metrics struct {
	open        prometheus.Gauge
	connections *prometheus.CounterVec
	bytes       *prometheus.CounterVec
}

// NewMetrics registers the metrics of a server.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "gateway", Name: "open_connections", Help: "Connections that are forwarded now."}),
		connections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "gateway", Name: "connections_total", Help: "Connections that have ended, by result.",
		}, []string{"result"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "gateway", Name: "bytes_total", Help: "Bytes of connections that have ended, by direction: in is from clients.",
		}, []string{"direction"}),
	}
	for _, result := range []string{resultForwarded, resultInvalid, resultNoRoute, resultNoEndpoint, resultUnreachable, resultLimit} {
		m.connections.WithLabelValues(result)
	}
	registry.MustRegister(m.open, m.connections, m.bytes)
	return m
}

func (m *Metrics) ended(result string) { m.connections.WithLabelValues(result).Inc() }
