package gardenletdeployer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// InputsOf returns the inputs for a Gardenlet, whose configuration is complete. Images that it does not name are those of its chart.
func InputsOf(gardenlet *v1alpha1.Gardenlet) Inputs {
	deployment := gardenlet.Spec.Deployment
	return Inputs{
		Name: gardenlet.Name, Namespace: constants.GardenNamespace, Deployment: deployment.GardenletDeployment, Config: gardenlet.Spec.Config.Raw,
		Bootstrap: v1alpha1.BootstrapToken, ImageOverwrites: ptr.Deref(deployment.ImageVectorOverwrite, ""),
		ComponentImageOverwrites: ptr.Deref(deployment.ComponentImageVectorOverwrite, ""),
	}
}

// RuntimeName returns the name of the ManagedResource with which the operator deploys the gardenlet of a Seed into the runtime cluster. The gardenlet
// does not upgrade itself while it exists, because both contain the same objects.
func RuntimeName(seed string) string { return Release + "-" + seed }

// Puller pulls the charts of Gardenlets.
type Puller struct {
	// Secret reads a Secret of the namespace garden in the garden.
	Secret func(ctx context.Context, name string) (*corev1.Secret, error)
	// Pull pulls a chart. credentials and authority may be nil.
	Pull func(ctx context.Context, from *gardencorev1.OCIRepository, credentials, authority *corev1.Secret) ([]byte, error)
}

// Chart returns the archive of the chart of a Gardenlet. The Secrets to which it refers need the labels of Secrets for registries, so that a
// Gardenlet cannot make others be read.
func (p Puller) Chart(ctx context.Context, gardenlet *v1alpha1.Gardenlet) ([]byte, error) {
	from := gardenlet.Spec.Deployment.Helm.OCIRepository
	credentials, err := p.secret(ctx, from.PullSecretRef, constants.RoleHelmPullSecret)
	if err != nil {
		return nil, err
	}
	authority, err := p.secret(ctx, from.CABundleSecretRef, constants.RoleOCICABundle)
	if err != nil {
		return nil, err
	}
	return p.Pull(ctx, &from, credentials, authority)
}

func (p Puller) secret(ctx context.Context, ref *corev1.LocalObjectReference, role string) (*corev1.Secret, error) {
	if ref == nil {
		return nil, nil
	}
	secret, err := p.Secret(ctx, ref.Name)
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s, to which the Gardenlet refers: %w", constants.GardenNamespace, ref.Name, err)
	}
	if secret.Labels[constants.LabelGardenRole] != role {
		return nil, fmt.Errorf("secret %s/%s, to which the Gardenlet refers, has no label %s=%s: add it",
			constants.GardenNamespace, ref.Name, constants.LabelGardenRole, role)
	}
	return secret, nil
}
