package certificates

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"os"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Own serves a self-signed certificate that the process keeps in memory. Clients can trust it only by comparing its
// fingerprint, which is logged.
type Own struct {
	clock clock.PassiveClock
	log   logr.Logger

	mu      sync.Mutex
	current *pair
}

// NewOwn returns an Own. It issues a certificate on the first request, and a new one before that expires.
func NewOwn(clock clock.PassiveClock, log logr.Logger) *Own { return &Own{clock: clock, log: log} }

// Get returns the certificate.
func (o *Own) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	if o.current == nil || o.current.certificate.NotAfter.Sub(now) < serverRenewal {
		names := []string{"localhost"}
		if host, err := os.Hostname(); err == nil {
			names = append(names, host)
		}
		made, err := newServer(names, now, now.Add(serverValidity), nil)
		if err != nil {
			return nil, fmt.Errorf("create a certificate: %w", err)
		}
		o.current = made
		digest := sha256.Sum256(made.certificate.Raw)
		o.log.Info("Serving with a self-signed certificate of this process",
			"sha256", hex.EncodeToString(digest[:]), "until", made.certificate.NotAfter)
	}
	return &tls.Certificate{Certificate: [][]byte{o.current.certificate.Raw}, PrivateKey: o.current.key, Leaf: o.current.certificate}, nil
}
