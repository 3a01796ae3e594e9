package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	operatorwebhook "github.com/trellis-k8s/trellis/pkg/operator/webhook"
	"github.com/trellis-k8s/trellis/pkg/program/manager"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/certificates"
)

// secretCertificate is the name of the Secret with the certificate of the webhooks.
const secretCertificate = component + "-cert"

// addWebhooks serves the webhooks in every replica, with a certificate that the operator issues itself.
func addWebhooks(ctx context.Context, mgr *manager.Manager, settings *v1alpha1.Server) error {
	certificate, err := certificates.AddSelfManaged(ctx, mgr, mgr.GetConfig(), certificates.Options{
		Secret: types.NamespacedName{Namespace: constants.GardenNamespace, Name: secretCertificate},
		DNSNames: []string{
			fmt.Sprintf("%s.%s.svc", component, constants.GardenNamespace), fmt.Sprintf("%s.%s", component, constants.GardenNamespace), component,
		},
		Configurations: []string{operatorwebhook.Name},
	}, certificates.NewMetrics(metrics.Registry), mgr.GetLogger().WithName("webhooks"))
	if err != nil {
		return fmt.Errorf("manage the certificate of the webhooks: %w", err)
	}
	server := webhook.NewServer(webhook.Options{
		Host: settings.BindAddress, Port: settings.Port, TLSOpts: []func(*tls.Config){certificates.Show(certificate.Get)},
	})
	ready, err := webhookserver.Register(ctx, server, mgr.GetCache(), operatorwebhook.Table(mgr.GetAPIReader()), webhookserver.NewMetrics(metrics.Registry))
	if err != nil {
		return err
	}
	return errors.Join(
		mgr.Add(server),
		mgr.AddReadyzCheck("webhook-caches", func(*http.Request) error { return ready() }),
		mgr.AddReadyzCheck("webhook-server", server.StartedChecker()),
	)
}
