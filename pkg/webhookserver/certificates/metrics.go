package certificates

import (
	"crypto/tls"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/metrics"
)

// Metrics report when the certificate of the webhooks expires.
type Metrics struct {
	expiry *metrics.Gauge
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	return &Metrics{expiry: metrics.NewGauge(registry, "webhook_certificate_expiry_timestamp_seconds",
		"Expiry of the serving certificate of webhooks, as a Unix time in seconds; 0 without a certificate.")}
}

// Serve returns a function that records the certificate that is served from now on.
func (m *Metrics) Serve(log logr.Logger, now clock.PassiveClock) func(*tls.Certificate) {
	return func(certificate *tls.Certificate) { m.serve(certificate, log, now) }
}

// serve records and logs the certificate that is served from now on.
func (m *Metrics) serve(certificate *tls.Certificate, log logr.Logger, now clock.PassiveClock) {
	leaf := leafOf(certificate)
	if leaf == nil {
		return
	}
	m.expiry.Set(float64(leaf.NotAfter.Unix()))
	log = log.WithValues("serial", leaf.SerialNumber.String(), "dnsNames", leaf.DNSNames, "expires", leaf.NotAfter.UTC().Format(time.RFC3339))
	if now.Now().After(leaf.NotAfter) {
		log.Error(nil, "The webhook serving certificate has expired, and API servers reject it: renew it")
		return
	}
	log.Info("Serving webhooks with a certificate", "validFor", remaining(leaf, now.Now()))
}
