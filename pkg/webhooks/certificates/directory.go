// Package certificates has the certificates that webhooks are served with.
package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// The names of the files, as in Secrets of type kubernetes.io/tls.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// Directory serves the certificate that is in a directory, and reads it again when the files change. It has to be started, by a
// manager for example.
type Directory struct {
	*certwatcher.CertWatcher
}

// FromDirectory reads tls.crt and tls.key of a directory. The error says which file is missing or wrong.
func FromDirectory(path string, metrics *Metrics, log logr.Logger, now clock.PassiveClock) (*Directory, error) {
	watcher, err := certwatcher.New(filepath.Join(path, certificateFile), filepath.Join(path, keyFile))
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the webhooks, %s and %s in server.webhooks.tls.serverCertDir: %w", certificateFile, keyFile, err)
	}
	watcher.RegisterCallback(func(certificate tls.Certificate) { metrics.serve(&certificate, log, now) })
	return &Directory{watcher}, nil
}

// leafOf returns the certificate that is shown to clients; nil if there is none.
func leafOf(certificate *tls.Certificate) *x509.Certificate {
	if certificate.Leaf != nil {
		return certificate.Leaf
	}
	if len(certificate.Certificate) == 0 {
		return nil
	}
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		return nil
	}
	return leaf
}

// Show has a TLS server show the certificate of a function.
func Show(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) func(*tls.Config) {
	return func(config *tls.Config) {
		config.MinVersion = tls.VersionTLS12
		config.GetCertificate = get
	}
}

// remaining is for the log.
func remaining(leaf *x509.Certificate, now time.Time) string {
	return leaf.NotAfter.Sub(now).Round(time.Second).String()
}
