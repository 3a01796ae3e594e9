package shoot

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/test/kit"
)

// egress returns the file that makes the shoot's API server reach webhooks through a proxy. The proxy knows where the resource-manager of
// the shoot runs, whose host name does not exist on this machine.
func (w *world) egress() string {
	w.Helper()
	directory := w.TempDir()
	socket, file := filepath.Join(directory, "proxy"), filepath.Join(directory, "egress.yaml")
	listener, err := net.Listen("unix", socket)
	kit.Must(w, err)
	proxy := &http.Server{Handler: http.HandlerFunc(w.connect), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = proxy.Serve(listener) }()
	w.Cleanup(func() { _ = proxy.Close() })
	kit.Must(w, os.WriteFile(file, []byte(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: controlplane
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: "`+socket+`"}}}
`), 0o600))
	return file
}

// connect serves the method CONNECT.
func (w *world) connect(writer http.ResponseWriter, request *http.Request) {
	host, _, _ := strings.Cut(request.Host, ":")
	port := w.webhookPort.Load()
	if name, _, _ := strings.Cut(host, "."); name != "gardener-resource-manager" || port == 0 {
		http.Error(writer, "there is no "+request.Host, http.StatusBadGateway)
		return
	}
	server, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), 10*time.Second)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadGateway)
		return
	}
	defer server.Close()
	hijacker, is := writer.(http.Hijacker)
	if !is {
		return
	}
	connection, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{connection, server}, {server, connection}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}
