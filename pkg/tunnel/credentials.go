package tunnel

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Files are the paths of PEM files with which one side authenticates itself and the other side.
type Files struct {
	// Certificate and Key are those of this side.
	Certificate, Key string
	// Authorities is the bundle of authorities of the other side.
	Authorities string
}

// load reads the files.
func (f Files) load() (tls.Certificate, *x509.CertPool, error) {
	certificate, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("read the certificate %s with the key %s: %w", f.Certificate, f.Key, err)
	}
	bundle, err := os.ReadFile(f.Authorities)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("read the authorities: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(bundle) {
		return tls.Certificate{}, nil, fmt.Errorf("read the authorities: %s contains no certificate", f.Authorities)
	}
	return certificate, authorities, nil
}

// ForAgents returns the TLS configuration with which a server accepts agents: those whose certificate has the common name agent.
func (f Files) ForAgents(agent string) (*tls.Config, error) {
	config, err := f.server(agent)
	if err == nil {
		config.MinVersion, config.NextProtos = tls.VersionTLS13, []string{protocol}
	}
	return config, err
}

// ForClients returns the TLS configuration with which a server accepts API servers: those whose certificate has the common name client.
func (f Files) ForClients(client string) (*tls.Config, error) { return f.server(client) }

func (f Files) server(client string) (*tls.Config, error) {
	certificate, authorities, err := f.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities,
		VerifyConnection: named(client), SessionTicketsDisabled: true,
	}, nil
}

// ForServers returns the TLS configuration with which an agent connects to servers. It verifies the name of each.
func (f Files) ForServers() (*tls.Config, error) {
	certificate, authorities, err := f.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}, RootCAs: authorities, NextProtos: []string{protocol},
	}, nil
}

// named refuses clients whose certificate does not have a common name. An authority also signs the certificates of the other clients.
func named(name string) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("the client has no certificate")
		}
		if found := state.PeerCertificates[0].Subject.CommonName; found != name {
			return fmt.Errorf("the certificate of the client is for %q, want %q", found, name)
		}
		return nil
	}
}
