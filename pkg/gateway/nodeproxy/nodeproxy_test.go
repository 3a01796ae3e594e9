package nodeproxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/trellis-k8s/trellis/test/kit"
)

// TestGreet checks the request to a gateway, and which responses are accepted.
func TestGreet(t *testing.T) {
	server := Server{Host: "api.one.example.org:443", Destination: "outbound|443||kube-apiserver.shoot--dev--one.svc.cluster.local"}
	for response, want := range map[string]string{
		"HTTP/1.1 200 OK\r\n\r\n": "",
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n": "503 Service Unavailable",
		"HTTP/1.1 200 OK\r\n\r\nmore":                                   "more than its response",
		"SSH-2.0-OpenSSH\r\n":                                           "read the response",
		"":                                                              "read the response",
		"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", mostResponse): "read the response",
	} {
		proxy, gateway := net.Pipe()
		asked := make(chan *http.Request, 1)
		go func() {
			defer gateway.Close()
			request, err := http.ReadRequest(bufio.NewReader(gateway))
			kit.Must(t, err)
			asked <- request
			_, _ = io.WriteString(gateway, response)
		}()
		if err := server.greet(proxy); kit.TextOf(err) != want && !strings.Contains(kit.TextOf(err), want) || (want == "") != (err == nil) {
			t.Errorf("%.30q: got %v, want %q", response, err, want)
		}
		_ = proxy.Close()
		if request := <-asked; request.Method != http.MethodConnect || request.Host != server.Host || request.Header.Get("X-Gardener-Destination") != server.Destination {
			t.Errorf("the request is %+v", request)
		}
	}
}

// node is the network of a node.
type node struct {
	link  netlink.Link
	calls []string
	fails error
}

func (n *node) LinkByName(name string) (netlink.Link, error) {
	if name == loopback {
		return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: name}}, nil
	}
	if n.link == nil {
		return nil, netlink.LinkNotFoundError{}
	}
	return n.link, nil
}

func (n *node) LinkAdd(link netlink.Link) error {
	n.calls = append(n.calls, "add "+link.Type()+" "+link.Attrs().Name)
	if n.fails == nil {
		n.link = link
	}
	return n.fails
}

func (n *node) LinkSetUp(link netlink.Link) error {
	n.calls = append(n.calls, "up "+link.Attrs().Name)
	return nil
}

func (n *node) AddrReplace(_ netlink.Link, address *netlink.Addr) error {
	n.calls = append(n.calls, address.IPNet.String())
	return nil
}

// TestAddress checks that a node gets the address on an interface, which is created once.
func TestAddress(t *testing.T) {
	for ip, want := range map[string]string{"240.1.2.3": "240.1.2.3/32", "2001:db8::1": "2001:db8::1/128"} {
		address, err := NewAddress(ip, "apiserver-proxy")
		kit.Must(t, err)
		one := &node{}
		address.network = one
		kit.Must(t, errors.Join(address.Ensure(), address.Ensure()))
		again := want + ", up apiserver-proxy"
		if got := strings.Join(one.calls, ", "); got != "add dummy apiserver-proxy, "+again+", "+again {
			t.Errorf("%s: got %s", ip, got)
		}
		address.network = &node{fails: errors.New("operation not permitted")}
		if err := address.Ensure(); err == nil || !strings.Contains(err.Error(), "create the interface apiserver-proxy: operation not permitted") {
			t.Errorf("without rights: %v", err)
		}
		one = &node{fails: fmt.Errorf("add: %w", syscall.EOPNOTSUPP)}
		address.network = one
		kit.Must(t, address.Ensure())
		if got := strings.Join(one.calls, ", "); got != "add dummy apiserver-proxy, "+want+", up lo" {
			t.Errorf("%s on a kernel without dummy interfaces: got %s", ip, got)
		}
	}
	if _, err := NewAddress("240.1", "x"); err == nil || !strings.Contains(err.Error(), "not an IP address") {
		t.Errorf("a wrong address: %v", err)
	}
}
