package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/controlplane"
	"github.com/trellis-k8s/trellis/pkg/extension/heartbeat"
	"github.com/trellis-k8s/trellis/pkg/extension/webhook"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/leaderfence"
	"github.com/trellis-k8s/trellis/pkg/process"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	"github.com/trellis-k8s/trellis/pkg/provider/local/controllers"
	"github.com/trellis-k8s/trellis/pkg/provider/local/webhooks"
	"github.com/trellis-k8s/trellis/pkg/restclient"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
)

// gracefulShutdown is how long running reconciles may take to finish after a stop signal.
const gracefulShutdown = 5 * time.Second

func newControllersCommand() *cobra.Command {
	options := &controllersOptions{}
	command := &cobra.Command{
		Use:   "controllers --namespace NAMESPACE",
		Short: "Run the controllers and the webhooks for control planes, in a seed",
		Example: `  # in a Pod of the seed
  provider-local controllers --namespace extension-provider-local --machine-env REGISTRY=registry.example.org

  # next to a control plane without kubelets
  provider-local controllers --kubeconfig seed.kubeconfig --namespace garden --simulate-machines`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.complete(); err != nil {
				return err
			}
			return runControllers(command.Context(), options)
		},
	}
	options.addFlags(command.Flags())
	return command
}

// runControllers returns when the context ends, an error occurs, or another process becomes the leader.
func runControllers(ctx context.Context, options *controllersOptions) error {
	vector, err := images.FromEnvironment()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), extension.AddToScheme(scheme)); err != nil {
		return err
	}
	mgr, election, err := newManager(&options.common, scheme, cacheOptions())
	if err != nil {
		return err
	}
	var classes []extensionsv1alpha1.ExtensionClass
	for _, class := range options.classes {
		classes = append(classes, extensionsv1alpha1.ExtensionClass(class))
	}
	err = controllers.AddToManager(ctx, mgr, controllers.Options{
		Settings: options.settings, Disabled: options.disabled, Version: version, Clock: clock.RealClock{}, Images: vector,
		Common: extension.Options{Classes: classes, IgnoreOperationAnnotation: options.ignoreOperation, MaxConcurrentReconciles: options.workers},
	})
	if err != nil {
		return err
	}
	err = heartbeat.AddToManager(mgr, heartbeat.Options{
		Name: local.Name, Namespace: options.namespace, Period: time.Duration(options.heartbeat) * time.Second,
	})
	if err != nil {
		return err
	}
	if err := addWebhooks(ctx, mgr, options); err != nil {
		return err
	}
	mgr.GetLogger().Info("Starting "+local.Name,
		"version", version, "cluster", mgr.GetConfig().Host, "simulatedMachines", options.settings.Machines.Simulated)
	return election.Start(ctx, mgr)
}

// addWebhooks serves the webhooks for control planes, unless all are disabled.
func addWebhooks(ctx context.Context, mgr manager.Manager, options *controllersOptions) error {
	changes := controlplane.Options{Provider: local.Type, Reader: mgr.GetClient()}
	served := slices.DeleteFunc([]webhook.Webhook{
		controlplane.Shoots(webhooks.ShootEnsurer{}, changes), controlplane.Exposure(webhooks.ExposureEnsurer{}, changes),
	}, func(one webhook.Webhook) bool { return slices.Contains(options.disabledWebhooks, one.Name) })
	if len(served) == 0 {
		return nil
	}
	return addWebhookServer(ctx, mgr, &options.common, local.Name, served)
}

func addWebhookServer(ctx context.Context, mgr manager.Manager, options *common, name string, served []webhook.Webhook) error {
	server, err := webhook.AddToManager(ctx, mgr, served, webhook.Options{
		Name: name, Namespace: options.namespace, Port: options.webhookPort, URL: options.webhookURL, Service: options.webhookService,
	})
	if err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhook-server", server.Check)
}

// cacheOptions restricts the cache to Pods and Nodes that represent machines.
func cacheOptions() cache.Options {
	machines := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{local.LabelProvider: local.Type})}
	return cache.Options{
		NewInformer: rewatch.NewInformer, DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: machines, &corev1.Node{}: machines},
	}
}

// newManager returns the manager of a cluster, with its health checks.
func newManager(options *common, scheme *runtime.Scheme, of cache.Options) (manager.Manager, *leaderfence.Election, error) {
	log := process.NewLogger(options.logLevel, options.logFormat)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	access, err := restConfig(options)
	if err != nil {
		return nil, nil, err
	}
	election, err := leaderfence.NewElection(options.election(), access, access)
	if err != nil {
		return nil, nil, err
	}
	mgr, err := manager.New(access, election.Elect(manager.Options{
		Scheme: scheme, Logger: log, Cache: of,
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&corev1.Secret{}, &corev1.Service{}, &corev1.ConfigMap{}},
		}},
		HealthProbeBindAddress:  options.healthAddress,
		Metrics:                 metricsserver.Options{BindAddress: options.metricsAddress},
		PprofBindAddress:        "0",
		GracefulShutdownTimeout: ptr.To(gracefulShutdown),
	}))
	if err != nil {
		return nil, nil, fmt.Errorf("set up the connection to the cluster: %w", err)
	}
	return mgr, election, errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("informer-sync", process.CacheSynced("cluster", mgr.GetCache())),
	)
}

// restConfig returns the connection to the cluster, from the kubeconfig file or, without one, from the Pod's service
// account.
func restConfig(options *common) (*rest.Config, error) {
	config, err := process.RestConfig(options.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent, config.QPS, config.Burst = local.Name+"/"+version, defaultQPS, defaultBurst
	restclient.Tune(config)
	return config, nil
}
