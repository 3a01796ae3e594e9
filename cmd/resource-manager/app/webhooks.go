package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhooks"
	"github.com/trellis-k8s/trellis/pkg/webhooks/nodeagentauthorizer"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/certificates"
)

// addWebhooks serves the enabled webhooks in every replica.
func addWebhooks(ctx context.Context, mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration,
	targetCluster cluster.Cluster, certificate getCertificate,
) error {
	enabled := webhooks.Enabled(webhooks.Table(), &config.Webhooks)
	if len(enabled) == 0 {
		return nil
	}
	settings := config.Server.Webhooks
	server := webhook.NewServer(webhook.Options{ // the certificate can be replaced while the server runs
		Host: settings.BindAddress, Port: settings.Port, TLSOpts: []func(*tls.Config){certificates.Show(certificate)},
	})
	ready, err := webhooks.Register(server, enabled, webhooks.Facts{
		Target: targetCluster.GetClient(), TargetDirect: targetCluster.GetAPIReader(),
		Source: mgr.GetClient(), SourceDirect: mgr.GetAPIReader(),
		Informers: targetCluster.GetCache(), Context: ctx, Config: &config.Webhooks,
		NodeAgentAuthorizer: func() (http.Handler, error) { return addNodeAgentAuthorizer(mgr, config, targetCluster) },
	}, webhookserver.NewMetrics(metrics.Registry))
	if err != nil {
		return err
	}
	return errors.Join(
		mgr.Add(server),
		mgr.AddReadyzCheck("webhook-caches", func(*http.Request) error { return ready() }),
		mgr.AddReadyzCheck("webhook-server", server.StartedChecker()),
	)
}

func addNodeAgentAuthorizer(mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration, targetCluster cluster.Cluster,
) (http.Handler, error) {
	settings := config.Webhooks.NodeAgentAuthorizer
	return nodeagentauthorizer.AddToManager(mgr, targetCluster, nodeagentauthorizer.Options{
		MachineNamespace: settings.MachineNamespace, AuthorizeWithSelectors: ptr.Deref(settings.AuthorizeWithSelectors, false),
		Metrics: nodeagentauthorizer.NewMetrics(metrics.Registry), Log: mgr.GetLogger().WithName("node-agent-authorizer"),
		Clock: clock.RealClock{},
	})
}

// getCertificate returns the certificate that a server presents to clients.
type getCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// webhookCertificate returns the certificate of the webhooks, from a directory or managed by the resource-manager itself.
// It returns nil if no webhook is enabled.
func webhookCertificate(
	ctx context.Context, mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration, targetConfig *rest.Config,
) (getCertificate, error) {
	if len(webhooks.Enabled(webhooks.Table(), &config.Webhooks)) == 0 {
		return nil, nil
	}
	settings := config.Server.Webhooks.TLS
	log, served := mgr.GetLogger().WithName("webhooks"), certificates.NewMetrics(metrics.Registry)
	switch own := settings.SelfManaged; {
	case own != nil:
		managed, err := certificates.AddSelfManaged(ctx, mgr, targetConfig, certificates.Options{
			Secret:   types.NamespacedName{Namespace: own.SecretNamespace, Name: own.SecretName},
			DNSNames: own.DNSNames, Configurations: own.WebhookConfigurations,
		}, served, log)
		if err != nil {
			return nil, err
		}
		return managed.Get, nil
	case settings.ServerCertDir != "":
		directory, err := certificates.FromDirectory(settings.ServerCertDir, served.Serve(log, clock.RealClock{}), log, clock.RealClock{})
		if err != nil {
			return nil, fmt.Errorf("read the certificate of the webhooks, tls.crt and tls.key in server.webhooks.tls.serverCertDir: %w", err)
		}
		return directory.GetCertificate, mgr.Add(directory)
	default:
		return nil, errors.New("webhooks are enabled, but a serving certificate is not configured: set a directory with tls.crt " +
			"and tls.key in server.webhooks.tls.serverCertDir, or enable server.webhooks.tls.selfManaged")
	}
}
