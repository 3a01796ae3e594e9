package main

import (
	"context"
	"crypto/tls"
	"errors"
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
	"github.com/trellis-k8s/trellis/pkg/webhooks/certificates"
	"github.com/trellis-k8s/trellis/pkg/webhooks/nodeagentauthorizer"
)

// addWebhooks serves the webhooks that are enabled, in every replica.
func addWebhooks(ctx context.Context, mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration,
	targetCluster cluster.Cluster, targetConfig *rest.Config,
) error {
	enabled := webhooks.Enabled(webhooks.Table(), &config.Webhooks)
	if len(enabled) == 0 {
		return nil
	}
	server, err := webhookServer(ctx, mgr, config.Server.Webhooks, targetConfig)
	if err != nil {
		return err
	}
	ready, err := webhooks.Register(server, enabled, webhooks.Facts{
		Target: targetCluster.GetClient(), TargetDirect: targetCluster.GetAPIReader(),
		Source: mgr.GetClient(), SourceDirect: mgr.GetAPIReader(),
		Informers: targetCluster.GetCache(), Context: ctx, Config: &config.Webhooks,
		NodeAgentAuthorizer: func() (http.Handler, error) { return addNodeAgentAuthorizer(mgr, config, targetCluster) },
	}, webhooks.NewMetrics(metrics.Registry))
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
		Metrics: nodeagentauthorizer.NewMetrics(metrics.Registry), Log: mgr.GetLogger().WithName("node-agent-authorizer"), Clock: clock.RealClock{},
	})
}

// webhookServer returns a server with a certificate that is replaced while it runs.
func webhookServer(ctx context.Context, mgr manager.Manager, settings configv1alpha1.HTTPSServer, targetConfig *rest.Config) (webhook.Server, error) {
	certificate, err := webhookCertificate(ctx, mgr, settings.TLS, targetConfig)
	if err != nil {
		return nil, err
	}
	return webhook.NewServer(webhook.Options{
		Host: settings.BindAddress, Port: settings.Port, TLSOpts: []func(*tls.Config){certificates.Show(certificate)},
	}), nil
}

// webhookCertificate returns what has the certificate: a directory, or the resource-manager itself.
func webhookCertificate(ctx context.Context, mgr manager.Manager, settings configv1alpha1.TLSServer, targetConfig *rest.Config,
) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
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
		directory, err := certificates.FromDirectory(settings.ServerCertDir, served, log, clock.RealClock{})
		if err != nil {
			return nil, err
		}
		return directory.GetCertificate, mgr.Add(directory)
	default:
		return nil, errors.New("webhooks are enabled, but there is no certificate to serve them with: name a directory with tls.crt " +
			"and tls.key in server.webhooks.tls.serverCertDir, or have one made by server.webhooks.tls.selfManaged")
	}
}
