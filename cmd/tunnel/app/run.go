package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/trellis-k8s/trellis/pkg/tunnel"
)

const headerTimeout = 10 * time.Second

// serverOptions are the flags of the server.
type serverOptions struct {
	shared
	agents, clients       string
	agentName, clientName string
	drain                 time.Duration
}

func (o *serverOptions) check() error {
	if o.agentName == "" || o.clientName == "" {
		return errors.New("--agent-name or --client-name is missing: set them to the common names of the two kinds of clients")
	}
	return o.shared.check()
}

// agentOptions are the flags of the agent.
type agentOptions struct {
	shared
	servers []tunnel.Endpoint
	drain   time.Duration
}

// runServer runs the server until the context ends.
func runServer(ctx context.Context, o serverOptions, to io.Writer) error {
	log := o.logger(to)
	agents, err := o.files.ForAgents(o.agentName)
	if err != nil {
		return err
	}
	clients, err := o.files.ForClients(o.clientName)
	if err != nil {
		return err
	}
	registry := newRegistry()
	server := tunnel.NewServer(log, tunnel.NewMetrics(registry))
	listeners, err := listen(ctx, o.agents, o.clients, o.health)
	if err != nil {
		return err
	}
	front := &http.Server{
		Handler: server, TLSConfig: clients, ReadHeaderTimeout: headerTimeout, ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(log), slog.LevelError),
		Protocols: new(http.Protocols), // HTTP/1 only: connections are taken over
	}
	front.Protocols.SetHTTP1(true)
	group, failed := errgroup.WithContext(ctx)
	group.Go(func() error { return server.ServeAgents(ctx, listeners[0], agents) })
	group.Go(func() error { return ended(front.ServeTLS(listeners[1], "", "")) })
	health := healthServer(registry, server.Ready, log)
	group.Go(func() error { return ended(health.Serve(listeners[2])) })
	log.Info("Starts", "agents", o.agents, "clients", o.clients)
	<-failed.Done()
	server.Drain()
	if ctx.Err() != nil { // API servers need time to notice that this server is not ready
		log.Info("Ends", "after", o.drain.String())
		pause := time.NewTimer(o.drain)
		defer pause.Stop()
		<-pause.C
	}
	_ = listeners[0].Close()
	server.Close()
	return errors.Join(front.Close(), health.Close(), group.Wait())
}

// runAgent runs the agent until the context ends.
func runAgent(ctx context.Context, o agentOptions, to io.Writer) error {
	if len(o.servers) == 0 {
		return errors.New("--server is missing: set it to NAME=HOST:PORT of a server")
	}
	log := o.logger(to)
	config, err := o.files.ForServers()
	if err != nil {
		return err
	}
	registry := newRegistry()
	agent := &tunnel.Agent{
		Servers: o.servers, TLS: config, Dial: tunnel.Dialer.DialContext, DrainTimeout: o.drain, Log: log, Metrics: tunnel.NewMetrics(registry),
	}
	listeners, err := listen(ctx, o.health)
	if err != nil {
		return err
	}
	health := healthServer(registry, agent.Ready, log)
	served := make(chan error, 1)
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		served <- ended(health.Serve(listeners[0]))
		cancel()
	}()
	log.Info("Starts", "servers", o.servers)
	agent.Run(running)
	return errors.Join(health.Close(), <-served)
}

// listen listens at all addresses, or at none.
func listen(ctx context.Context, addresses ...string) ([]net.Listener, error) {
	var all []net.Listener
	for _, address := range addresses {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			for _, other := range all {
				_ = other.Close()
			}
			return nil, fmt.Errorf("listen at %s: %w", address, err)
		}
		all = append(all, listener)
	}
	return all, nil
}

func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// healthServer serves health and metrics. ready returns why the program is not ready.
func healthServer(registry prometheus.Gatherer, ready func() error, log logr.Logger) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok")
	})
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout, ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(log), slog.LevelError)}
}

// ended returns nil if a server was closed.
func ended(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
