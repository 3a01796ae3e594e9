package app

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	"github.com/trellis-k8s/trellis/pkg/provider/local/admission"
)

const (
	// admissionName is the name of the admission part of the extension.
	admissionName = "admission-local"
	// variableKubeconfig is the path of the kubeconfig for the garden. The installer of extensions in the garden's runtime
	// cluster sets it.
	variableKubeconfig = "GARDEN_KUBECONFIG"
)

func newAdmissionCommand() *cobra.Command {
	options := &common{}
	command := &cobra.Command{
		Use:   "admission --namespace NAMESPACE",
		Short: "Run the webhooks that check provider configurations, for the garden's API server",
		Long: `admission checks the provider configurations of CloudProfiles and Shoots with this infrastructure. --kubeconfig, or the variable
GARDEN_KUBECONFIG, is the path of the kubeconfig for the garden, whose API server calls the webhooks. The namespace must exist in the
garden. It contains the certificates.`,
		Example: `  provider-local admission --kubeconfig garden.kubeconfig --namespace extension-provider-local \
    --webhook-config-url https://gardener-extension-admission-local.garden:443`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options.kubeconfig = cmp.Or(options.kubeconfig, os.Getenv(variableKubeconfig))
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
