// Package access gets, renews and replaces the credentials with which a gardenlet reaches the garden.
package access

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Connection is a transport to the garden whose credentials can be replaced while it is used. Requests that have begun, such as watches, end
// with the credentials that they began with; all further ones use the new ones.
type Connection struct {
	current atomic.Pointer[credentials]
}

// credentials are how the garden is reached from some time on.
type credentials struct {
	config    *rest.Config
	transport http.RoundTripper
	// certificate is nil if the kubeconfig has none.
	certificate *x509.Certificate
}

// NewConnection returns a connection with the credentials of a kubeconfig.
func NewConnection(config *rest.Config) (*Connection, error) {
	c := &Connection{}
	if err := c.Replace(config); err != nil {
		return nil, err
	}
	return c, nil
}

// errMoved reports that the garden has another address than at the start.
var errMoved = errors.New("the address of the garden has changed: restart the gardenlet")

// Replace has all requests from now on use the credentials and the CA of a kubeconfig. Its address has to be the one before: clients know it.
func (c *Connection) Replace(config *rest.Config) error {
	if before := c.current.Load(); before != nil && before.config.Host != config.Host {
		return fmt.Errorf("%w (before: %s, now: %s)", errMoved, before.config.Host, config.Host)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return fmt.Errorf("set up the connection to the garden: %w", err)
	}
	certificate, err := certificateOf(config)
	if err != nil {
		return err
	}
	c.current.Store(&credentials{config, transport, certificate})
	return nil
}

// RoundTrip sends a request with the present credentials.
func (c *Connection) RoundTrip(request *http.Request) (*http.Response, error) {
	return c.current.Load().transport.RoundTrip(request)
}

// Config returns how clients reach the garden through this connection. The caller sets rates and the user agent.
func (c *Connection) Config() *rest.Config {
	config := c.current.Load().config
	return &rest.Config{Host: config.Host, APIPath: config.APIPath, Transport: c}
}

// Address returns the address and the CA of the garden alone, for kubeconfigs of others.
func (c *Connection) Address() *rest.Config {
	return rest.AnonymousClientConfig(c.current.Load().config)
}

// Expires returns until when the client certificate is valid; zero without a certificate.
func (c *Connection) Expires() time.Time {
	if certificate := c.current.Load().certificate; certificate != nil {
		return certificate.NotAfter
	}
	return time.Time{}
}

// certificateOf returns the client certificate of a kubeconfig; nil if it has none.
func certificateOf(config *rest.Config) (*x509.Certificate, error) {
	if len(config.CertData) == 0 {
		return nil, nil
	}
	certificate, err := parseCertificate(config.CertData)
	if err != nil {
		return nil, fmt.Errorf("the client certificate of the kubeconfig: %w", err)
	}
	return certificate, nil
}

func parseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("it does not begin with a PEM block of type CERTIFICATE")
	}
	return x509.ParseCertificate(block.Bytes)
}
