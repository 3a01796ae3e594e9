package opening

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	proxyproto "github.com/pires/go-proxyproto"

	"github.com/trellis-k8s/trellis/pkg/gateway/forward"
)

// hello returns the first message of a handshake with a server name.
func hello(tb testing.TB, name string) []byte {
	tb.Helper()
	var sent bytes.Buffer
	config := &tls.Config{ServerName: name, InsecureSkipVerify: name == "", MinVersion: tls.VersionTLS12}
	_ = tls.Client(recorder{reader: strings.NewReader(""), to: &sent}, config).HandshakeContext(tb.Context())
	if sent.Len() == 0 {
		tb.Fatal("the client sends nothing")
	}
	return sent.Bytes()
}

// recorder is a connection that records what is written to it.
type recorder struct {
	net.Conn

	reader io.Reader
	to     *bytes.Buffer
}

func (r recorder) Read(part []byte) (int, error)  { return r.reader.Read(part) }
func (r recorder) Write(part []byte) (int, error) { return r.to.Write(part) }
func (recorder) Close() error                     { return nil }
func (recorder) SetDeadline(time.Time) error      { return nil }

func find(_ context.Context, host string) (string, []string, error) {
	if host != "api.one.example.org" {
		return "", nil, fmt.Errorf("%w: %q", forward.ErrNoRoute, host)
	}
	return "one", []string{"192.0.2.1:443"}, nil
}

func header(tb testing.TB, version byte) []byte {
	tb.Helper()
	from, to := &net.TCPAddr{IP: net.ParseIP("192.0.2.9"), Port: 4711}, &net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 443}
	text, err := proxyproto.HeaderProxyFromAddrs(version, from, to).Format()
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// fragmented returns the same message in records of few bytes.
func fragmented(message []byte) []byte {
	var all []byte
	for body := message[5:]; len(body) > 0; {
		length := min(len(body), 40)
		all = append(append(all, message[0], message[1], message[2], 0, byte(length)), body[:length]...)
		body = body[length:]
	}
	return all
}

// TestTLS checks which connections lead to a host, and that the host receives all that was read after the header of the PROXY protocol.
func TestTLS(t *testing.T) {
	one := hello(t, "API.one.example.org")
	long := append([]byte{22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff}, make([]byte, 1<<17)...)
	for name, test := range map[string]struct {
		header   bool
		sent     []byte
		received []byte
		want     error
	}{
		"a host":                    {false, one, one, nil},
		"more than the hello":       {false, append(bytes.Clone(one), "rest"...), append(bytes.Clone(one), "rest"...), nil},
		"records of few bytes":      {false, fragmented(one), fragmented(one), nil},
		"another host":              {false, hello(t, "api.two.example.org"), nil, forward.ErrNoRoute},
		"no name":                   {false, hello(t, ""), nil, forward.ErrInvalid},
		"no TLS":                    {false, []byte("GET / HTTP/1.1\r\nHost: api.one.example.org\r\n\r\n"), nil, forward.ErrInvalid},
		"nothing":                   {false, nil, nil, forward.ErrInvalid},
		"the first half":            {false, one[:len(one)/2], nil, forward.ErrInvalid},
		"a message without an end":  {false, long, nil, forward.ErrInvalid},
		"header of version 1":       {true, append(header(t, 1), one...), one, nil},
		"header of version 2":       {true, append(header(t, 2), one...), one, nil},
		"a header may be missing":   {true, one, one, nil},
		"a header is not allowed":   {false, append(header(t, 1), one...), nil, forward.ErrInvalid},
		"a header that is not one":  {true, append([]byte("PROXY TCP9 a b c d\r\n"), one...), nil, forward.ErrInvalid},
		"two headers":               {true, append(append(header(t, 1), header(t, 1)...), one...), nil, forward.ErrInvalid},
		"a header and nothing else": {true, header(t, 2), nil, forward.ErrInvalid},
	} {
		for way, reader := range map[string]io.Reader{"at once": bytes.NewReader(test.sent), "byte by byte": iotest.OneByteReader(bytes.NewReader(test.sent))} {
			if name == "header of version 1" && way != "at once" {
				continue // senders send it at once, as its specification says
			}
			var written bytes.Buffer
			destination, err := TLS(find, test.header)(t.Context(), recorder{reader: reader, to: &written})
			if !errors.Is(err, test.want) || written.Len() > 0 {
				t.Errorf("%s, %s: got %v, want %v; %d bytes are sent", name, way, err, test.want, written.Len())
			}
			rest, _ := io.ReadAll(reader)
			if received := slices.Concat(destination.Received, rest); test.want == nil && (destination.Name != "one" || !bytes.Equal(received, test.received)) {
				t.Errorf("%s, %s: %q receives %d bytes, want %d", name, way, destination.Name, len(received), len(test.received))
			}
		}
	}
}

// TestConnect checks which requests lead to a host.
func TestConnect(t *testing.T) {
	request := func(target string) []byte {
		return []byte("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\nX-Gardener-Destination: outbound|443||other.example.org\r\n\r\n")
	}
	one := request("api.one.example.org:443")
	for name, test := range map[string]struct {
		header bool
		sent   []byte
		answer string
		want   error
	}{
		"a host":              {false, append(bytes.Clone(one), "hello"...), "", nil},
		"after a header":      {true, append(header(t, 2), append(bytes.Clone(one), "hello"...)...), "", nil},
		"another host":        {false, request("kubernetes.default.svc:443"), "503", forward.ErrNoRoute},
		"another port":        {false, request("api.one.example.org:22"), "400", forward.ErrInvalid},
		"another method":      {false, []byte("GET http://api.one.example.org:443/ HTTP/1.1\r\n\r\n"), "400", forward.ErrInvalid},
		"a head without end":  {false, append([]byte("CONNECT api.one.example.org:443 HTTP/1.1\r\nA: "), bytes.Repeat([]byte("a"), 1<<16)...), "", forward.ErrInvalid},
		"something else":      {false, hello(t, "api.one.example.org"), "", forward.ErrInvalid},
		"nothing":             {false, nil, "", forward.ErrInvalid},
		"a request in Header": {false, []byte("CONNECT api.one.example.org:443 HTTP/1.1\r\nHost: other:443\r\n\r\nhello"), "", nil},
	} {
		var written bytes.Buffer
		reader := bytes.NewReader(test.sent)
		destination, err := Connect(find, 443, test.header)(t.Context(), recorder{reader: reader, to: &written})
		if !errors.Is(err, test.want) || !strings.Contains(written.String(), test.answer) || (test.answer == "") != (written.Len() == 0) {
			t.Errorf("%s: got %v and %q, want %v and %q", name, err, written.String(), test.want, test.answer)
		}
		rest, _ := io.ReadAll(reader)
		if received := string(slices.Concat(destination.Received, rest)); test.want == nil && (received != "hello" || destination.Name != "one" || string(destination.Answer) != connected) {
			t.Errorf("%s: %q receives %q", name, destination.Name, received)
		}
	}
}

// FuzzTLS checks that no bytes make the reader fail in another way than with an error, and that it does not read on and on.
func FuzzTLS(f *testing.F) {
	f.Add(hello(f, "api.one.example.org"))
	f.Add(append(header(f, 2), hello(f, "api.one.example.org")...))
	f.Fuzz(func(t *testing.T, sent []byte) {
		destination, err := TLS(find, true)(t.Context(), recorder{reader: bytes.NewReader(sent), to: &bytes.Buffer{}})
		if err == nil && !bytes.Contains(sent, destination.Received) {
			t.Error("the host receives something else than what was sent")
		}
	})
}
