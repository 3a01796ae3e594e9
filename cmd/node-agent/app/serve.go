package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/trellis-k8s/trellis/pkg/apis/nodeagent/v1alpha1"
)

// Limits of the servers of health and metrics.
const headerTimeout, stopTimeout = 10 * time.Second, 5 * time.Second

// newLog returns the logger that a configuration asks for.
func newLog(to io.Writer, settings *v1alpha1.NodeAgentConfiguration) logr.Logger {
	options := &slog.HandlerOptions{Level: map[string]slog.Level{"debug": slog.LevelDebug, "error": slog.LevelError}[settings.LogLevel]}
	if settings.LogFormat == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(to, options))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(to, options))
}

// handlers returns what the servers of health and of metrics serve.
func handlers(registry prometheus.Gatherer, ready func() bool) (health, metrics http.Handler) {
	checks, exposed := http.NewServeMux(), http.NewServeMux()
	checks.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	checks.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "the node agent has no certificate yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok")
	})
	exposed.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return checks, exposed
}

// serve serves health and metrics until the context ends.
func serve(ctx context.Context, settings *v1alpha1.NodeAgentConfiguration, registry prometheus.Gatherer, ready func() bool) error {
	health, metrics := handlers(registry, ready)
	group, ctx := errgroup.WithContext(ctx)
	for _, each := range []struct {
		at      *v1alpha1.Server
		handler http.Handler
	}{{settings.Server.HealthProbes, health}, {settings.Server.Metrics, metrics}} {
		group.Go(func() error { return listen(ctx, each.at, each.handler) })
	}
	return group.Wait()
}

// listen serves at an address until the context ends.
func listen(ctx context.Context, at *v1alpha1.Server, handler http.Handler) error {
	server := &http.Server{Addr: net.JoinHostPort(at.BindAddress, strconv.Itoa(at.Port)), Handler: handler, ReadHeaderTimeout: headerTimeout}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		stopped <- server.Shutdown(limited)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
