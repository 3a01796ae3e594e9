package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller"
	"github.com/trellis-k8s/trellis/pkg/apis/admissioncontroller/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/leaderfence"
	"github.com/trellis-k8s/trellis/pkg/process"
	"github.com/trellis-k8s/trellis/pkg/restclient"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/certificates"
)

const (
	// component is the name of the process in user agents.
	component = "admission-controller"
	// gracefulShutdown is how long running requests may take to finish after a stop signal.
	gracefulShutdown = 5 * time.Second
)

// run starts an admission controller. It returns when the context ends or an error occurs.
func run(ctx context.Context, c *v1alpha1.AdmissionControllerConfiguration) error {
	log := process.NewLogger(c.LogLevel, c.LogFormat)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	config, err := restConfig(c)
	if err != nil {
		return err
	}
	election, err := leaderfence.NewElection(c.LeaderElection, component, config, config)
	if err != nil {
		return err
	}
	mgr, err := newManager(c, config, election, log)
	if err != nil {
		return err
	}
	if err := addWebhooks(ctx, mgr, c); err != nil {
		return err
	}
	log.Info("Starting admission-controller", "version", version, "cluster", config.Host)
	return election.Start(ctx, mgr)
}

// addWebhooks serves the webhooks in every replica.
func addWebhooks(ctx context.Context, mgr manager.Manager, c *v1alpha1.AdmissionControllerConfiguration) error {
	certificate, err := addCertificate(ctx, mgr, c.Server.Webhooks.TLS)
	if err != nil {
		return err
	}
	server := webhook.NewServer(webhook.Options{
		Host: c.Server.Webhooks.BindAddress, Port: c.Server.Webhooks.Port, TLSOpts: []func(*tls.Config){certificates.Show(certificate)},
	})
	table := admissioncontroller.Table(admissioncontroller.Readers{Live: mgr.GetAPIReader(), Cached: mgr.GetClient()}, c.Server)
	ready, err := webhookserver.Register(ctx, server, mgr.GetCache(), table, webhookserver.NewMetrics(metrics.Registry))
	if err != nil {
		return err
	}
	return errors.Join(
		mgr.Add(server),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("webhook-caches", func(*http.Request) error { return ready() }),
		mgr.AddReadyzCheck("webhook-server", server.StartedChecker()),
	)
}

// addCertificate returns the certificate of the webhooks, from a directory or issued by the process itself.
func addCertificate(
	ctx context.Context, mgr manager.Manager, settings v1alpha1.TLSServer,
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

// restConfig returns the connection to the garden, from the kubeconfig file or, without one, from the Pod's service
// account.
func restConfig(c *v1alpha1.AdmissionControllerConfiguration) (*rest.Config, error) {
	connection := c.GardenClientConnection
	config, err := process.RestConfig(connection.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("garden: %w", err)
	}
	config.UserAgent = component + "/" + version
	config.QPS, config.Burst = connection.QPS, int(connection.Burst)
	config.AcceptContentTypes, config.ContentType = connection.AcceptContentTypes, connection.ContentType
	restclient.Tune(config)
	return config, nil
}

// newManager returns the manager of the garden.
func newManager(
	c *v1alpha1.AdmissionControllerConfiguration, config *rest.Config, election *leaderfence.Election, log logr.Logger,
) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(served.AddToScheme(scheme))
	mgr, err := manager.New(config, election.Elect(manager.Options{
		Scheme: scheme, Logger: log,
		Cache:                   cache.Options{NewInformer: rewatch.NewInformer, DefaultTransform: cache.TransformStripManagedFields()},
		HealthProbeBindAddress:  address(c.Server.HealthProbes),
		Metrics:                 metricsserver.Options{BindAddress: address(c.Server.Metrics)},
		PprofBindAddress:        "0",
		GracefulShutdownTimeout: ptr.To(gracefulShutdown),
	}))
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the garden: %w", err)
	}
	return mgr, nil
}

func address(server *v1alpha1.Server) string {
	return net.JoinHostPort(server.BindAddress, strconv.Itoa(server.Port))
}
