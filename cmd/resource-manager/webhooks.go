package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhooks"
	"github.com/trellis-k8s/trellis/pkg/webhooks/certificates"
)

// addWebhooks serves the webhooks that are enabled, in every replica.
func addWebhooks(ctx context.Context, mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration,
	targetCluster cluster.Cluster,
) error {
	enabled := webhooks.Enabled(webhooks.Table(), &config.Webhooks)
	if len(enabled) == 0 {
		return nil
	}
	server, err := webhookServer(mgr, config.Server.Webhooks, mgr.GetLogger().WithName("webhooks"))
	if err != nil {
		return err
	}
	ready, err := webhooks.Register(ctx, server, enabled, webhooks.Facts{
		Target: targetCluster.GetClient(), TargetDirect: targetCluster.GetAPIReader(),
		Source: mgr.GetClient(), SourceDirect: mgr.GetAPIReader(),
		Config: &config.Webhooks,
	}, targetCluster.GetCache(), webhooks.NewMetrics(metrics.Registry))
	if err != nil {
		return err
	}
	return errors.Join(
		mgr.Add(server),
		mgr.AddReadyzCheck("webhook-caches", func(*http.Request) error { return ready() }),
		mgr.AddReadyzCheck("webhook-server", server.StartedChecker()),
	)
}

// webhookServer returns a server with a certificate that is read again when it changes.
func webhookServer(mgr manager.Manager, settings configv1alpha1.HTTPSServer, log logr.Logger) (webhook.Server, error) {
	if settings.TLS.ServerCertDir == "" {
		return nil, errors.New("webhooks are enabled, but there is no certificate to serve them with: " +
			"name a directory with tls.crt and tls.key in server.webhooks.tls.serverCertDir")
	}
	certificate, err := certificates.FromDirectory(settings.TLS.ServerCertDir, certificates.NewMetrics(metrics.Registry), log, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(certificate); err != nil {
		return nil, fmt.Errorf("watch the certificate of the webhooks: %w", err)
	}
	return webhook.NewServer(webhook.Options{
		Host: settings.BindAddress, Port: settings.Port,
		TLSOpts: []func(*tls.Config){certificates.Options(certificate.GetCertificate)},
	}), nil
}
