package installation

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
)

// observe reads the inputs of an extension's bundle through watches. It returns nil if the extension has no chart. An
// error of type invalid describes a problem in the garden.
func (r *reconciler) observe(ctx context.Context, installation *corev1beta1.ControllerInstallation) (*Inputs, error) {
	in := &Inputs{
		Installation: installation, Registration: &corev1beta1.ControllerRegistration{}, Deployment: &gardencorev1.ControllerDeployment{},
		Seed: &corev1beta1.Seed{}, Version: r.Version, FeatureGates: r.FeatureGates, Garden: r.Garden,
	}
	if installation.Spec.DeploymentRef == nil {
		return nil, nil
	}
	name := installation.Spec.RegistrationRef.Name
	if err := r.garden.Get(ctx, client.ObjectKey{Name: name}, in.Registration); err != nil {
		return nil, ifNotFound(err, reasonRegistrationNotFound, "ControllerRegistration %s does not exist", name)
	}
	if err := r.garden.Get(ctx, client.ObjectKey{Name: r.SeedName}, in.Seed); err != nil {
		return nil, ifNotFound(err, reasonSeedNotFound, "Seed %s does not exist", r.SeedName)
	}
	name = installation.Spec.DeploymentRef.Name
	if err := r.objects.Get(ctx, in.user(), client.ObjectKey{Name: name}, in.Deployment); err != nil {
		return nil, ifNotFound(err, reasonChartInformation, "ControllerDeployment %s does not exist", name)
	}
	if in.Deployment.Helm == nil {
		return nil, nil
	}
	if err := r.observeResources(ctx, in); err != nil {
		return nil, err
	}
	var err error
	if in.Chart, err = r.chart(ctx, in.user(), in.Deployment); err != nil {
		return nil, err
	}
	if in.GardenIdentity, err = r.gardenIdentity(ctx, in.user()); err != nil {
		return nil, err
	}
	namespace := &corev1.Namespace{}
	if err := r.objects.Get(ctx, in.user(), client.ObjectKey{Name: constants.GardenNamespace}, namespace); err != nil {
		return nil, fmt.Errorf("read the namespace whose UID identifies the garden: %w", err)
	}
	in.GardenUID = string(namespace.UID)
	facts, err := r.Facts.Get(ctx)
	in.SeedIsGarden = facts.IsGarden
	return in, err
}

// user returns the installation as the user of the objects of the garden that are read for it.
func (in *Inputs) user() gardenobjects.User { return userOf(in.Installation.Name) }

func userOf(installation string) gardenobjects.User {
	return gardenobjects.User{Kind: "ControllerInstallation", ObjectKey: client.ObjectKey{Name: installation}}
}

// ifNotFound returns an error of type invalid if err is NotFound.
func ifNotFound(err error, reason, format string, args ...any) error {
	if apierrors.IsNotFound(err) {
		return &invalid{reason: reason, error: fmt.Errorf(format, args...)}
	}
	return fmt.Errorf("read the inputs of an extension: %w", err)
}

// observeResources reads the Secrets and ConfigMaps to which the deployment refers.
func (r *reconciler) observeResources(ctx context.Context, in *Inputs) error {
	in.Resources, in.Confidential = map[string]map[string]string{}, map[string]bool{}
	for _, resource := range in.Deployment.Resources {
		data := map[string]string{}
		switch ref := resource.ResourceRef; ref.Kind {
		case "Secret":
			secret, err := r.secret(ctx, in.user(), ref.Name, constants.RoleResourceReference, reasonValues)
			if err != nil {
				return err
			}
			for key, value := range secret.Data {
				data[key] = string(value)
			}
			in.Confidential[resource.Name] = true
		case "ConfigMap":
			found := &corev1.ConfigMap{}
			if err := r.named(ctx, in.user(), ref.Name, found, constants.RoleResourceReference, reasonValues); err != nil {
				return err
			}
			data = found.Data
		}
		in.Resources[resource.Name] = data
	}
	return nil
}

// secret reads a Secret with a role in namespace garden.
func (r *reconciler) secret(ctx context.Context, user gardenobjects.User, name, role, reason string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, r.named(ctx, user, name, secret, role, reason)
}

// named reads an object with a role in namespace garden. Requiring the label prevents deployments from reading other Secrets of the garden.
func (r *reconciler) named(
	ctx context.Context, user gardenobjects.User, name string, object client.Object, role, reason string,
) error {
	if err := r.objects.Get(ctx, user, client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}, object); err != nil {
		return ifNotFound(err, reason, "%s/%s, to which the ControllerDeployment refers, does not exist", constants.GardenNamespace, name)
	}
	if object.GetLabels()[constants.LabelGardenRole] != role {
		return &invalid{reason: reason, error: fmt.Errorf("%s/%s, to which the ControllerDeployment refers, has no label %s=%s",
			constants.GardenNamespace, name, constants.LabelGardenRole, role)}
	}
	return nil
}

// chart returns the archive of a deployment's chart.
func (r *reconciler) chart(ctx context.Context, user gardenobjects.User, deployment *gardencorev1.ControllerDeployment) ([]byte, error) {
	raw, from := deployment.Helm.RawChart, deployment.Helm.OCIRepository
	switch {
	case (len(raw) > 0) == (from != nil):
		return nil, &invalid{
			reason: reasonChartInformation,
			error:  fmt.Errorf("ControllerDeployment %s must have one of rawChart and ociRepository", deployment.Name),
		}
	case from == nil:
		return raw, nil
	}
	var credentials, authority *corev1.Secret
	var err error
	if from.PullSecretRef != nil {
		if credentials, err = r.secret(ctx, user, from.PullSecretRef.Name, constants.RoleHelmPullSecret, reasonPull); err != nil {
			return nil, err
		}
	}
	if from.CABundleSecretRef != nil {
		if authority, err = r.secret(ctx, user, from.CABundleSecretRef.Name, constants.RoleOCICABundle, reasonPull); err != nil {
			return nil, err
		}
	}
	chart, err := r.registries.Pull(ctx, from, credentials, authority)
	if err != nil {
		return nil, &invalid{reason: reasonPull, error: err, passes: true}
	}
	return chart, nil
}

// gardenIdentity returns the identity of the garden.
func (r *reconciler) gardenIdentity(ctx context.Context, user gardenobjects.User) (string, error) {
	object := &corev1.ConfigMap{}
	if err := r.objects.Get(
		ctx, user, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentityName}, object,
	); err != nil {
		return "", fmt.Errorf("read the identity of the garden: %w", err)
	}
	identity := object.Data[constants.ClusterIdentityName]
	if identity == "" {
		return "", errors.New("the ConfigMap with the identity of the garden has none")
	}
	return identity, nil
}
