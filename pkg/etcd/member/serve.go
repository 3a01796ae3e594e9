package member

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

// readyTimeout is the timeout of the quorum check. It is shorter than the timeout of the probe.
const readyTimeout = 3 * time.Second

// Ready returns why clients cannot use the member: its etcd does not run or is a learner, it has no quorum, or the
// Lease has never recorded the creation of the cluster. Without this record, the loss of the volume would go unnoticed,
// so no write may be acknowledged.
func (m *Member) Ready(ctx context.Context) error {
	m.mu.Lock()
	etcd, state, recorded := m.etcd, m.state, m.recorded
	m.mu.Unlock()
	switch {
	case etcd == nil && state.Reason != "":
		return errors.New(state.String())
	case etcd == nil:
		return errors.New(starting("etcd has not been started yet"))
	case !recorded:
		return errors.New(starting("the Lease does not record the creation of the cluster yet"))
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := m.quorate(ctx); err != nil {
		return fmt.Errorf("%s: the member has no quorum: %w", lease.ReasonUnhealthy, err)
	}
	return nil
}

func starting(why string) string {
	return lease.State{Reason: lease.ReasonStarting, Message: why}.String()
}

// Serve serves /readyz and /healthz until the context ends.
func (m *Member) Serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := m.Ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: requestTimeout}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(m.config.ListenAddress, strconv.Itoa(m.config.StatusPort)))
	if err != nil {
		return fmt.Errorf("serve the status of the member: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if files := m.config.ClientTLS; files != nil {
		err = server.ServeTLS(listener, files.ServerCertFile, files.ServerKeyFile)
	} else {
		err = server.Serve(listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the status of the member: %w", err)
}
