package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/restclient"
	"github.com/trellis-k8s/trellis/pkg/ui/gate"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/certificates"
)

// addUI serves the page of ManagedResources in every replica if the configuration enables it. The page reads with the
// tokens of its viewers. It uses the resource-manager's cache of ManagedResources, but not its credentials.
func addUI(
	ctx context.Context, mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration,
	sourceConfig, targetConfig *rest.Config, ofWebhooks getCertificate,
) error {
	settings := config.Server.UI
	if settings == nil {
		return nil
	}
	log := mgr.GetLogger().WithName("ui")
	options := gate.Options{
		Source: anonymous(sourceConfig), Namespaces: config.SourceClientConnection.Namespaces, Version: version, Clock: clock.RealClock{},
		Metrics: gate.NewMetrics(metrics.Registry),
	}
	if !isSameCluster(sourceConfig, targetConfig) {
		options.Target = anonymous(targetConfig)
	}
	page, err := gate.New(options)
	if err != nil {
		return err
	}
	server := &gate.Server{Gate: page, Address: address(&settings.Server), Certificate: ofWebhooks, Log: log}
	server.Follow = func(ctx context.Context) error {
		informer, err := mgr.GetCache().GetInformer(ctx, &resourcesv1alpha1.ManagedResource{})
		if err != nil {
			return fmt.Errorf("register the informer of ManagedResources for the page: %w", err)
		}
		return page.FollowInformer(ctx, informer)
	}
	switch directory := settings.TLS.ServerCertDir; {
	case directory != "":
		files, err := certificates.FromDirectory(directory, func(*tls.Certificate) {}, log, clock.RealClock{})
		if err != nil {
			return fmt.Errorf("read the certificate of the page, tls.crt and tls.key in server.ui.tls.serverCertDir: %w", err)
		}
		server.Certificate = files.GetCertificate
		if err := mgr.Add(files); err != nil {
			return err
		}
	case ofWebhooks == nil:
		server.Certificate = certificates.NewOwn(clock.RealClock{}, log).Get
	}
	if _, err := mgr.GetCache().GetInformer(ctx, &resourcesv1alpha1.ManagedResource{}, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("register the informer of ManagedResources for the page: %w", err)
	}
	return mgr.Add(server)
}

// anonymous returns the connection to a cluster without the credentials of the resource-manager.
func anonymous(config *rest.Config) *rest.Config {
	config = rest.AnonymousClientConfig(config)
	config.Wrap(restclient.NoRedirects)
	return config
}

// isSameCluster reports whether two configurations connect to the same API server, so that a token for one is also valid
// for the other.
func isSameCluster(a, b *rest.Config) bool {
	return a.Host == b.Host && a.APIPath == b.APIPath && a.ServerName == b.ServerName &&
		a.CAFile == b.CAFile && bytes.Equal(a.CAData, b.CAData)
}
