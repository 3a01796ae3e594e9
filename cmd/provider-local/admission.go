package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	"github.com/trellis-k8s/trellis/pkg/provider/local/admission"
)

// admissionName is the name of the admission part of the extension.
const admissionName = "admission-local"

func newAdmissionCommand() *cobra.Command {
	options := &common{}
	command := &cobra.Command{
		Use:   "admission --namespace NAMESPACE",
		Short: "Run the webhooks that check provider configurations, for the garden's API server",
		Long: `admission checks the provider configurations of CloudProfiles and Shoots with this infrastructure. --kubeconfig is that of the garden's API
server, which calls the webhooks.`,
		Example: "  provider-local admission --kubeconfig garden.kubeconfig --namespace garden --webhook-config-url https://admission-local.garden:443",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.validate(); err != nil {
				return err
			}
			return runAdmission(command.Context(), options)
		},
	}
	options.addFlags(command.Flags(), admissionName)
	return command
}

func runAdmission(ctx context.Context, options *common) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), served.AddToScheme(scheme)); err != nil {
		return err
	}
	mgr, election, err := newManager(options, scheme, cache.Options{DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return err
	}
	if err := addWebhookServer(ctx, mgr, options, admissionName, admission.Webhooks()); err != nil {
		return err
	}
	mgr.GetLogger().Info("Starting "+admissionName, "version", version, "cluster", mgr.GetConfig().Host, "extension", local.Name)
	return election.Start(ctx, mgr)
}
