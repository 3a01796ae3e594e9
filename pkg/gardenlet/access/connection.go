// Package access obtains, renews and replaces the credentials with which a gardenlet accesses the garden.
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

// Connection is a transport to the garden whose credentials can be replaced while it is used. Requests in progress, such
// as watches, keep the credentials with which they started. New requests use the new ones.
type Connection struct {
	current atomic.Pointer[credentials]
}

// credentials are one set of credentials for the garden.
type credentials struct {
	config    *rest.Config
	transport http.RoundTripper
	// certificate is the client certificate, or nil if the kubeconfig has none.
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

// errMoved reports that the address of the garden differs from the one at startup.
var errMoved = errors.New("the address of the garden has changed: restart the gardenlet")

// Replace makes all new requests use the credentials and CA of a kubeconfig. Its address must not differ, because clients have stored it.
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

// RoundTrip sends a request with the current credentials.
func (c *Connection) RoundTrip(request *http.Request) (*http.Response, error) {
	return c.current.Load().transport.RoundTrip(request)
}

// Config returns a client configuration that uses this connection. The caller sets rate limits and the user agent.
func (c *Connection) Config() *rest.Config {
	config := c.current.Load().config
	return &rest.Config{Host: config.Host, APIPath: config.APIPath, Transport: c}
}

// Address returns only the address and CA of the garden, for kubeconfigs of other components.
func (c *Connection) Address() *rest.Config {
	return rest.AnonymousClientConfig(c.current.Load().config)
}

// Expires returns when the client certificate expires, or zero without a certificate.
func (c *Connection) Expires() time.Time {
	if certificate := c.current.Load().certificate; certificate != nil {
		return certificate.NotAfter
	}
	return time.Time{}
}

// certificateOf returns the client certificate of a kubeconfig, or nil if it has none.
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

// parseCertificate parses the first certificate of a PEM file.
func parseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("it does not begin with a PEM block of type CERTIFICATE")
	}
	return x509.ParseCertificate(block.Bytes)
}
