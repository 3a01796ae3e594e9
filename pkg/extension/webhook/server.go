package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/trellis-k8s/trellis/pkg/watches"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/certificates"
)

// Server serves webhooks in every replica. The leader maintains certificates and configurations.
type Server struct {
	webhooks     []Webhook
	options      Options
	certificates *certificates.SelfManaged
}

// AddToManager adds a server to a manager, with controllers that create and renew its certificates, and write and repair
// the configurations in the seed. The process needs permission to get, list, watch, create, patch and delete
// MutatingWebhookConfigurations and ValidatingWebhookConfigurations, to get its namespace, and to get, list, watch,
// create and update Secrets in it.
func AddToManager(ctx context.Context, mgr manager.Manager, webhooks []Webhook, options Options) (*Server, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := check(webhooks); err != nil {
		return nil, err
	}
	s := &Server{webhooks: webhooks, options: options}
	// The expiry is only logged.
	metrics, log := certificates.NewMetrics(prometheus.NewRegistry()), mgr.GetLogger().WithName("webhooks")
	s.certificates, err = certificates.AddSelfManaged(ctx, mgr, mgr.GetConfig(), certificates.Options{
		Secret:   types.NamespacedName{Namespace: options.Namespace, Name: options.secretName()},
		DNSNames: options.dnsNames(), Configurations: []string{options.configurationName(TargetSeed)},
	}, metrics, log)
	if err != nil {
		return nil, fmt.Errorf("manage the certificates of the webhooks: %w", err)
	}
	served := webhook.NewServer(webhook.Options{
		Host: options.Host, Port: options.Port, TLSOpts: []func(*tls.Config){certificates.Show(s.certificates.Get)},
	})
	for _, one := range webhooks {
		served.Register("/"+one.Name, one.Handler)
	}
	if err := mgr.Add(served); err != nil {
		return nil, fmt.Errorf("add the webhook server: %w", err)
	}
	return s, addRegistration(mgr, webhooks, options)
}

// Check fails until the server has a certificate. Use it as a readiness check.
func (s *Server) Check(*http.Request) error {
	_, err := s.certificates.Get(nil)
	return err
}

// ShootConfigurations returns the configurations of webhooks with [TargetShoot], for a bundle of the Shoot. It returns an
// error until there is a certificate.
func (s *Server) ShootConfigurations() ([]client.Object, error) {
	bundle := s.certificates.Bundle()
	if len(bundle) == 0 {
		return nil, errors.New("the webhooks do not have a certificate yet")
	}
	return objectsOf(configurations(s.webhooks, s.options, TargetShoot, bundle)), nil
}

// Source triggers the requests that depend on [Server.ShootConfigurations] when the CA of the certificates changes.
func (s *Server) Source(requests func(context.Context) []reconcile.Request) source.Source {
	changes := watches.NewNotifier(1)
	s.certificates.OnBundle(changes.Wake)
	return changes.Source(func(ctx context.Context, _ client.Object) []reconcile.Request { return requests(ctx) })
}
