package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	"github.com/trellis-k8s/trellis/pkg/apis/admissioncontroller/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/program/manager"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/certificates"
)

// component is the name of the process in user agents.
const component = "admission-controller"

// run starts an admission controller. It returns when the context ends or an error occurs.
func run(ctx context.Context, c *v1alpha1.AdmissionControllerConfiguration) error {
	config, err := manager.Connect("garden", component+"/"+version, c.GardenClientConnection)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(served.AddToScheme(scheme))
	mgr, err := manager.New(manager.Options{
		Name: component, Version: version, LogLevel: c.LogLevel, LogFormat: c.LogFormat,
		Cluster: "garden", Config: config, Election: c.LeaderElection, Scheme: scheme,
		Cache: cache.Options{
			NewInformer: rewatch.NewInformer, DefaultTransform: cache.TransformStripManagedFields(), ByObject: graph.ByObject(),
		},
		Health: address(c.Server.HealthProbes), Metrics: address(c.Server.Metrics),
	})
	if err != nil {
		return err
	}
	if err := addWebhooks(ctx, mgr, c); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// addWebhooks serves the webhooks in every replica.
func addWebhooks(ctx context.Context, mgr ctrl.Manager, c *v1alpha1.AdmissionControllerConfiguration) error {
	certificate, err := addCertificate(ctx, mgr, c.Server.Webhooks.TLS)
	if err != nil {
		return err
	}
	server := webhook.NewServer(webhook.Options{
		Host: c.Server.Webhooks.BindAddress, Port: c.Server.Webhooks.Port, TLSOpts: []func(*tls.Config){certificates.Show(certificate)},
	})
	objects, watcher, err := addGraph(ctx, mgr, c.Server)
	if err != nil {
		return err
	}
	table := admissioncontroller.Table(admissioncontroller.Readers{
		Live: mgr.GetAPIReader(), Cached: mgr.GetClient(),
		Authorizer: seedauthorizer.NewHandler(seedauthorizer.Options{
			Paths: objects, Ready: watcher.Ready, Absent: seedauthorizer.LiveAbsent(mgr.GetAPIReader(), mgr.GetRESTMapper()),
			Metrics: seedauthorizer.NewMetrics(metrics.Registry), Log: mgr.GetLogger().WithName("seed-authorizer"),
		}),
		MayRead: func(object, seed graph.Vertex) bool { return objects.HasPath(object, seed, graph.Read) },
	}, c.Server)
	ready, err := webhookserver.Register(ctx, server, mgr.GetCache(), table, webhookserver.NewMetrics(metrics.Registry))
	if err != nil {
		return err
	}
	return errors.Join(
		mgr.Add(server),
		mgr.AddReadyzCheck("webhook-caches", func(*http.Request) error { return ready() }),
		mgr.AddReadyzCheck("seed-authorizer", func(*http.Request) error { return watcher.Ready() }),
		mgr.AddReadyzCheck("webhook-server", server.StartedChecker()),
	)
}

// addGraph adds the graph of the seed authorizer, which every replica keeps up to date.
func addGraph(ctx context.Context, mgr ctrl.Manager, server v1alpha1.ServerConfiguration) (*graph.Graph, *graph.Watcher, error) {
	objects := graph.New()
	watcher := graph.NewWatcher(objects, clock.RealClock{})
	if err := watcher.Watch(ctx, mgr.GetCache()); err != nil {
		return nil, nil, err
	}
	if server.EnableDebugHandlers != nil && *server.EnableDebugHandlers {
		if err := mgr.AddMetricsServerExtraHandler(seedauthorizer.PathDebug, seedauthorizer.DebugHandler(objects)); err != nil {
			return nil, nil, err
		}
	}
	return objects, watcher, mgr.Add(watcher)
}

// addCertificate returns the certificate of the webhooks, from a directory or issued by the process itself.
func addCertificate(
	ctx context.Context, mgr ctrl.Manager, settings v1alpha1.TLSServer,
) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	log, served := mgr.GetLogger().WithName("webhooks"), certificates.NewMetrics(metrics.Registry)
	if settings.ServerCertDir != "" {
		directory, err := certificates.FromDirectory(settings.ServerCertDir, served.Serve(log, clock.RealClock{}), log, clock.RealClock{})
		if err != nil {
			return nil, fmt.Errorf("read the certificate of the webhooks, tls.crt and tls.key in server.webhooks.tls.serverCertDir: %w", err)
		}
		return directory.GetCertificate, mgr.Add(directory)
	}
	own := settings.SelfManaged
	managed, err := certificates.AddSelfManaged(ctx, mgr, mgr.GetConfig(), certificates.Options{
		Secret:   types.NamespacedName{Namespace: own.SecretNamespace, Name: own.SecretName},
		DNSNames: own.DNSNames, Configurations: []string{admissioncontroller.Name},
	}, served, log)
	if err != nil {
		return nil, fmt.Errorf("manage the certificate of the webhooks: %w", err)
	}
	return managed.Get, nil
}

func address(server *v1alpha1.Server) string {
	return manager.Address(server.BindAddress, server.Port)
}
