package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/gateway/forward"
	"github.com/trellis-k8s/trellis/pkg/gateway/opening"
)

const (
	httpsPort         = 443
	readHeaderTimeout = 10 * time.Second
)

// apiServers are the API servers of all Shoots. Each has its own certificate and address. All answer with the objects of one cluster.
type apiServers struct {
	seed    client.Client
	handler http.Handler
	// requests counts the requests of gardenlet.
	requests atomic.Int64

	mutex     sync.Mutex
	addresses map[string]string
	servers   []*http.Server
}

// newAPIServers returns the API servers, in front of the cluster with this configuration, and the address of a proxy that leads to them until the context ends.
func newAPIServers(ctx context.Context, seed client.Client, config *rest.Config) (_ *apiServers, proxy string, err error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, "", fmt.Errorf("serve the API servers of Shoots: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, "", fmt.Errorf("serve the API servers of Shoots: %w", err)
	}
	a := &apiServers{seed: seed, addresses: map[string]string{}}
	a.handler = &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		a.requests.Add(1)
		r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
		r.Out.Header.Del("Authorization")
	}}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("serve the API servers of Shoots: %w", err)
	}
	server := forward.NewServer(logr.Discard(), forward.NewMetrics(prometheus.NewRegistry()), forward.Limits{})
	context.AfterFunc(ctx, func() { _ = listener.Close(); server.Close(); a.close() })
	go func() {
		_ = server.Serve(context.WithoutCancel(ctx), listener, opening.Connect(a.find, httpsPort, false))
	}()
	return a, listener.Addr().String(), nil
}

// serviceHost is the host of an API server in the cluster of the Seed.
var serviceHost = regexp.MustCompile(`^kube-apiserver\.(shoot--[a-z0-9-]+)\.svc(\.cluster\.local)?$`)

// find returns the address of the API server with a host. It starts to listen when it is asked for the first time.
func (a *apiServers) find(ctx context.Context, host string) (name string, addresses []string, err error) {
	match := serviceHost.FindStringSubmatch(host)
	if match == nil {
		return "", nil, fmt.Errorf("%w: %q", forward.ErrNoRoute, host)
	}
	name = match[1]
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.addresses[name] == "" {
		if err := a.listen(ctx, name); err != nil {
			return "", nil, fmt.Errorf("%w: %q: %w", forward.ErrNoRoute, host, err)
		}
	}
	return name, []string{a.addresses[name]}, nil
}

// listen serves the API server of a namespace with the certificate that gardenlet generated for it.
func (a *apiServers) listen(ctx context.Context, namespace string) error {
	var list corev1.SecretList
	err := a.seed.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{constants.LabelSecretsManagerName: kubeapiserver.SecretServer})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("namespace %s has no certificate of an API server", namespace)
	}
	data := list.Items[0].Data
	certificate, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("certificate in namespace %s: %w", namespace, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: a.handler, ReadHeaderTimeout: readHeaderTimeout,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	a.addresses[namespace] = listener.Addr().String()
	a.servers = append(a.servers, server)
	go func() { _ = server.ServeTLS(listener, "", "") }()
	return nil
}

func (a *apiServers) close() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, server := range a.servers {
		_ = server.Close()
	}
}
