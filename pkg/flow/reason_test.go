package flow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestReasonOf(t *testing.T) {
	sent := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://seed.example.org/api/v1/secrets", Err: err}
	}
	broken := func(err error) error {
		return &net.OpError{
			Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 40001}, Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 443}, Err: err,
		}
	}
	refused := sent(broken(os.NewSyscallError("connect", syscall.ECONNREFUSED)))
	for name, row := range map[string]struct {
		err  error
		want string
	}{
		"an error without a request":   {errors.New("the Secret s has no key"), "the Secret s has no key"},
		"a connection that is refused": {fmt.Errorf("write Secret n/s: %w", refused), "write Secret n/s: the API server does not answer: connection refused"},
		"a connection that is reset": {
			fmt.Errorf("read Secret n/s: %w", sent(broken(os.NewSyscallError("read", syscall.ECONNRESET)))),
			"read Secret n/s: the API server does not answer: connection reset by peer",
		},
		"a connection that ends":   {sent(io.EOF), "the API server does not answer: EOF"},
		"a name without address":   {sent(broken(&net.DNSError{Err: "no such host", Name: "seed.example.org"})), "the API server does not answer: its name cannot be resolved"},
		"no answer in time":        {sent(context.DeadlineExceeded), "the API server does not answer: no answer in time"},
		"several of them":          {errors.Join(fmt.Errorf("a: %w", refused), fmt.Errorf("b: %w", sent(io.EOF))), "a: the API server does not answer: connection refused\nb: the API server does not answer: EOF"},
		"an error of a connection": {sent(broken(errors.New("use of closed network connection"))), "the API server does not answer: use of closed network connection"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ReasonOf(row.err)
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			for _, address := range []string{"example.org", "10.0.0."} {
				if strings.Contains(got, address) {
					t.Errorf("%q has the address %s", got, address)
				}
			}
		})
	}
}
