package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-k8s/trellis/pkg/gateway/controller"
	"github.com/trellis-k8s/trellis/pkg/gateway/forward"
	"github.com/trellis-k8s/trellis/pkg/gateway/opening"
	"github.com/trellis-k8s/trellis/pkg/program/manager"
)

// component is the name of the process in user agents.
const component = "gateway"

// Limits of requests to the API server: a status for each route after the first start.
const (
	requestsPerSecond = 50
	requestsBurst     = 100
)

// Options are the options of a gateway.
type Options struct {
	// Gateway is the name of the Gateway. Service is the name of the Service in its namespace that has its addresses; empty for none.
	Gateway types.NamespacedName
	Service string
	// Version of the program.
	Version string
	// Kubeconfig is a path; empty for the service account of the Pod.
	Kubeconfig string
	// TLSAddress and ConnectAddress are where connections with TLS, and requests with the method CONNECT, are accepted; empty for none.
	TLSAddress, ConnectAddress string
	// HealthAddress and MetricsAddress are where health and metrics are served.
	HealthAddress, MetricsAddress string
	// ListenerPort is the port of the listeners in the Gateway that are served.
	ListenerPort int32
	// ProxyProtocol accepts a header of the PROXY protocol before connections.
	ProxyProtocol bool
	Limits        forward.Limits
	// ShutdownDelay is how long the gateway serves after the context has ended, though it is not ready. DrainTimeout is how long connections that are
	// not quiet may last after that.
	ShutdownDelay, DrainTimeout time.Duration
	// Quiet is after which silence connections are ended then; 0 for a second.
	Quiet               time.Duration
	LogLevel, LogFormat string
	// Registry of the metrics; nil for that of the process. Dial connects to endpoints; nil for the network of the process.
	Registry prometheus.Registerer
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// Run runs a gateway until the context ends and connections are drained.
func Run(ctx context.Context, o Options) error {
	if o.Registry == nil {
		o.Registry = metrics.Registry
	}
	config, err := manager.Connect("seed", component+"/"+o.Version, componentbaseconfigv1alpha1.ClientConnectionConfiguration{
		Kubeconfig: o.Kubeconfig, QPS: requestsPerSecond, Burst: requestsBurst,
	})
	if err != nil {
		return err
	}
	of := controller.Options{
		Gateway: o.Gateway, Service: o.Service, ListenerPort: o.ListenerPort, Metrics: o.Registry,
	}
	mgr, err := manager.New(manager.Options{
		Name: component, Version: o.Version, LogLevel: o.LogLevel, LogFormat: o.LogFormat, Cluster: "seed", Config: config,
		Election: &componentbaseconfigv1alpha1.LeaderElectionConfiguration{LeaderElect: ptr.To(false)},
		Scheme:   controller.Scheme(), Cache: controller.Cache(of), Health: o.HealthAddress, Metrics: o.MetricsAddress,
	})
	if err != nil {
		return err
	}
	router, err := controller.AddToManager(ctx, mgr, of)
	if err != nil {
		return err
	}
	var draining atomic.Bool
	if err := checks(mgr, router, &draining); err != nil {
		return err
	}
	server := forward.NewServer(mgr.Log, forward.NewMetrics(o.Registry), o.Limits)
	if o.Dial != nil {
		server.Dial = o.Dial
	}
	listeners, err := o.listen(ctx, router)
	if err != nil {
		return err
	}
	// The watches go on while connections are drained.
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, failed := errgroup.WithContext(ctx)
	group.Go(func() error { return mgr.Start(watching) })
	for _, each := range listeners {
		group.Go(func() error { return server.Serve(watching, each.Listener, each.open) })
	}
	<-failed.Done()
	draining.Store(true)
	if ctx.Err() != nil {
		o.end(context.WithoutCancel(ctx), server, listeners, mgr)
	}
	for _, each := range listeners {
		_ = each.Close()
	}
	server.Close()
	stop()
	return group.Wait()
}

// checks adds the checks of /readyz.
func checks(mgr *manager.Manager, router *controller.Router, draining *atomic.Bool) error {
	if err := errors.Join(
		mgr.AddReadyzCheck("routes", func(*http.Request) error { return router.Ready() }),
		mgr.AddReadyzCheck("drain", func(*http.Request) error {
			if draining.Load() {
				return errors.New("the gateway ends")
			}
			return nil
		}),
	); err != nil {
		return fmt.Errorf("add the health checks: %w", err)
	}
	return nil
}

// end lets connections end gracefully. Load balancers need time to notice that the gateway is not ready.
func (o *Options) end(ctx context.Context, server *forward.Server, listeners []listener, mgr *manager.Manager) {
	mgr.Log.Info("Ends", "after", o.ShutdownDelay.String())
	pause := time.NewTimer(o.ShutdownDelay)
	defer pause.Stop()
	<-pause.C
	for _, each := range listeners {
		_ = each.Close()
	}
	limited, cancel := context.WithTimeout(ctx, o.DrainTimeout)
	defer cancel()
	mgr.Log.Info("Drained", "connectionsCutOff", server.Drain(limited, cmp.Or(o.Quiet, forward.Quiet)))
}

// listener accepts connections that an opener understands.
type listener struct {
	net.Listener

	open forward.Opener
}

// listen listens at all addresses.
func (o *Options) listen(ctx context.Context, router *controller.Router) ([]listener, error) {
	var all []listener
	for address, open := range map[string]forward.Opener{
		o.TLSAddress: opening.TLS(router.Find, o.ProxyProtocol), o.ConnectAddress: opening.Connect(router.Find, int(o.ListenerPort), o.ProxyProtocol),
	} {
		if address == "" {
			continue
		}
		one, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return nil, fmt.Errorf("listen at %s: %w", address, err)
		}
		all = append(all, listener{one, open})
	}
	return all, nil
}
