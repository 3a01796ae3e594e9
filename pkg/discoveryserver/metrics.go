package discoveryserver

import (
	"crypto/tls"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// serverMetrics are the metrics of a discovery server.
type serverMetrics struct {
	requests *prometheus.CounterVec
	issuers  *prometheus.GaugeVec
	expiry   prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) *serverMetrics {
	m := &serverMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "discovery_server", Name: "requests_total", Help: "Answered requests, by issuer (shoot, workload_identity or none) and HTTP status.",
		}, []string{"issuer", "code"}),
		issuers: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "discovery_server", Name: "issuers", Help: "Managed issuers of Shoots, by state. The documents of those with the state invalid are not served.",
		}, []string{"state"}),
		expiry: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "discovery_server", Name: "certificate_expiry_timestamp_seconds", Help: "Expiry of the certificate of the server, as a Unix time in seconds.",
		}),
	}
	registry.MustRegister(m.requests, m.issuers, m.expiry)
	m.count(0, 0)
	return m
}

// count records how many issuers are served and how many are not valid.
func (m *serverMetrics) count(served, invalid int) {
	m.issuers.WithLabelValues("served").Set(float64(served))
	m.issuers.WithLabelValues("invalid").Set(float64(invalid))
}

// answered counts a request.
func (m *serverMetrics) answered(issuer string, status int) {
	m.requests.WithLabelValues(issuer, strconv.Itoa(status)).Inc()
}

// shows records the certificate that is served from now on.
func (m *serverMetrics) shows(certificate *tls.Certificate) {
	if certificate.Leaf != nil {
		m.expiry.Set(float64(certificate.Leaf.NotAfter.Unix()))
	}
}
