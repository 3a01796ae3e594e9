// Package certificates manages and serves the certificates of webhooks.
package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// The file names, which are the keys of Secrets of type kubernetes.io/tls.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// rereadInterval is how often the files are read. The files are not watched with inotify, because its instances are
// limited per user of a node (fs.inotify.max_user_instances) and might be exhausted.
const rereadInterval = 5 * time.Second

// Directory serves the certificate in two files, usually tls.crt and tls.key of a directory, and reloads them when they change. It
// must be started, for example by a manager. It is safe for concurrent use.
type Directory struct {
	certificatePath, keyPath string

	clock  clock.WithTicker
	log    logr.Logger
	served func(*tls.Certificate)

	current atomic.Pointer[content]
}

// content is the content of the files.
type content struct {
	certificatePEM, keyPEM []byte
	certificate            *tls.Certificate
}

// FromDirectory reads the certificate of a directory. It calls served with this certificate and with each later one. The
// error names the file that is missing or invalid.
func FromDirectory(path string, served func(*tls.Certificate), log logr.Logger, clk clock.WithTicker) (*Directory, error) {
	return FromFiles(filepath.Join(path, certificateFile), filepath.Join(path, keyFile), served, log, clk)
}

// FromFiles reads the certificate and its key from two files, like FromDirectory.
func FromFiles(certificatePath, keyPath string, served func(*tls.Certificate), log logr.Logger, clk clock.WithTicker) (*Directory, error) {
	d := &Directory{certificatePath: certificatePath, keyPath: keyPath, clock: clk, log: log.WithValues("directory", filepath.Dir(certificatePath)), served: served}
	if err := d.read(); err != nil {
		return nil, err
	}
	return d, nil
}

// GetCertificate returns the certificate, for a tls.Config. It never fails.
func (d *Directory) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return d.current.Load().certificate, nil
}

// NeedLeaderElection returns false, because every replica serves.
func (d *Directory) NeedLeaderElection() bool { return false }

// Start reads the files periodically until the context ends. While they are missing or invalid, it keeps the last
// certificate and logs the error once.
func (d *Directory) Start(ctx context.Context) error {
	ticker := d.clock.NewTicker(rereadInterval)
	defer ticker.Stop()
	failing := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		err := d.read()
		if err != nil && err.Error() != failing {
			d.log.Error(err, "Cannot reload the certificate; serving the previous one until the files are valid")
		}
		failing = ""
		if err != nil {
			failing = err.Error()
		}
	}
}

// read loads the files if they changed.
func (d *Directory) read() error {
	certificatePEM, err := os.ReadFile(d.certificatePath)
	if err != nil {
		return err
	}
	keyPEM, err := os.ReadFile(d.keyPath)
	if err != nil {
		return err
	}
	if last := d.current.Load(); last != nil && bytes.Equal(last.certificatePEM, certificatePEM) && bytes.Equal(last.keyPEM, keyPEM) {
		return nil
	}
	certificate, err := tls.X509KeyPair(certificatePEM, keyPEM)
	if err != nil {
		return fmt.Errorf("%s and %s in %s: %w", filepath.Base(d.certificatePath), filepath.Base(d.keyPath), filepath.Dir(d.certificatePath), err)
	}
	d.current.Store(&content{certificatePEM, keyPEM, &certificate})
	d.served(&certificate)
	return nil
}

// leafOf returns the leaf certificate, or nil if there is none.
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

// Show configures a TLS server to present the certificate that get returns.
func Show(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) func(*tls.Config) {
	return func(config *tls.Config) {
		config.MinVersion = tls.VersionTLS12
		config.GetCertificate = get
	}
}

// remaining returns how long a certificate is still valid, for the log.
func remaining(leaf *x509.Certificate, now time.Time) string {
	return leaf.NotAfter.Sub(now).Round(time.Second).String()
}
