package controlplanes

import (
	"context"
	"fmt"
	"net"
	"regexp"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/gateway/forward"
	"github.com/trellis-k8s/trellis/pkg/gateway/opening"
)

const httpsPort = 443

// serve leads to the API servers until the context ends.
func (r *Runner) serve(ctx context.Context, listener net.Listener) error {
	server := forward.NewServer(logr.Discard(), forward.NewMetrics(prometheus.NewRegistry()), forward.Limits{})
	defer server.Close()
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	return server.Serve(context.WithoutCancel(ctx), listener, opening.Connect(r.find, httpsPort, false))
}

var (
	// serviceHost is the host of an API server in the cluster of the Seed.
	serviceHost = regexp.MustCompile(`^kube-apiserver\.([a-z0-9-]+)\.svc(\.cluster\.local)?$`)
	// publicHost is the beginning of the host of an API server for users: api.<shoot>.<project>.
	publicHost = regexp.MustCompile(`^api\.([a-z0-9-]+)\.([a-z0-9-]+)\.(.+)$`)
)

// find returns the address of the API server with a host.
func (r *Runner) find(_ context.Context, host string) (name string, addresses []string, err error) {
	if match := serviceHost.FindStringSubmatch(host); match != nil {
		name = match[1]
	}
	if match := publicHost.FindStringSubmatch(host); len(match) > 3 && match[3] == r.options.Domain {
		name = constants.PrefixTechnicalID + match[2] + "--" + match[1]
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	port, found := r.ports[name]
	if !found {
		return "", nil, fmt.Errorf("%w: %q", forward.ErrNoRoute, host)
	}
	return name, []string{fmt.Sprintf("127.0.0.1:%d", port)}, nil
}
