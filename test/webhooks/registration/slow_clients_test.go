package registration

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/test/kit"
)

// connect opens a connection to the webhook server with a version of TLS.
func (f *fixture) connect(version uint16) (net.Conn, error) {
	f.Helper()
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(f.process.Authority.Bundle())
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: trusted, MinVersion: version, MaxVersion: version}}
	return dialer.DialContext(f.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", f.process.WebhookPort))
}

// TestVersionsOfTLS checks that the webhook server accepts TLS 1.2 and 1.3 and nothing older.
func TestVersionsOfTLS(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for version, accepted := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		connection, err := f.connect(version)
		if err == nil {
			kit.Must(t, connection.Close())
		}
		if (err == nil) != accepted {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err != nil && !strings.Contains(err.Error(), "protocol version") {
			t.Errorf("%s is refused for another reason: %v", tls.VersionName(version), err)
		}
	}
}

// TestSlowClients checks that each server closes the connection of a client that sends headers, bodies or a handshake slowly, or sends
// nothing.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	encrypted := func() (net.Conn, error) { return f.connect(tls.VersionTLS12) }
	plain := func(address string) func() (net.Conn, error) {
		return func() (net.Conn, error) { return (&net.Dialer{}).DialContext(t.Context(), "tcp", address) }
	}
	// t.Cleanup of the fixture runs after the subtests.
	const request = "POST /webhooks/high-availability-config HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
	for name, test := range map[string]struct {
		open  func() (net.Conn, error)
		sends string
	}{
		"no handshake":              {plain(fmt.Sprintf("127.0.0.1:%d", f.process.WebhookPort)), "\x16"},
		"half of the headers":       {encrypted, request},
		"half of the body":          {encrypted, request + "Content-Length: 1000\r\n\r\n{"},
		"an endless body":           {encrypted, request + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"},
		"half of the headers, HTTP": {plain(f.process.Metrics), "GET /metrics HTTP/1.1\r\n"},
		"of the probes":             {plain(f.process.Health), "GET /healthz HTTP/1.1\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connection, err := test.open()
			kit.Must(t, err)
			defer connection.Close()
			_, err = io.WriteString(connection, test.sends)
			kit.Must(t, err)
			kit.Must(t, connection.SetReadDeadline(time.Now().Add(kit.WaitTimeout)))
			if _, err := io.ReadAll(connection); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection is still open")
			}
		})
	}
}
