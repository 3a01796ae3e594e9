package managedseed

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/gardenletdeployer"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
)

const (
	// annotationBackup makes the Pods of a gardenlet be replaced when the Secret for its backups changes.
	annotationBackup = "checksum/seed-backup-secret"
	// vpaDeployment is a Deployment of the VerticalPodAutoscaler of a Shoot, in the namespace of its control plane.
	vpaDeployment = "vpa-admission-controller"
)

func userOf(name client.ObjectKey) gardenobjects.User {
	return gardenobjects.User{Kind: "ManagedSeed", ObjectKey: name}
}

// observe reads what the gardenlet of a ManagedSeed consists of.
func (r *reconciler) observe(ctx context.Context, managed *v1alpha1.ManagedSeed, shoot *corev1beta1.Shoot) (gardenletdeployer.Inputs, error) {
	spec := managed.Spec.Gardenlet
	in := gardenletdeployer.Inputs{
		Name: managed.Name, Namespace: constants.GardenNamespace, Config: spec.Config.Raw, Bootstrap: bootstrapOf(managed), Image: r.Image,
		ImageOverwrites: r.ImageOverwrites, ComponentImageOverwrites: r.ComponentImageOverwrites, PodAnnotations: map[string]string{},
	}
	if spec.Deployment != nil {
		in.Deployment = *spec.Deployment
	}
	if domain := shoot.Spec.DNS; domain != nil && ptr.Deref(domain.Domain, "") != "" {
		in.APIServerHost = "api." + *domain.Domain
	}
	if ptr.Deref(spec.MergeWithParent, false) {
		parent, err := json.Marshal(r.Config)
		if err != nil {
			return in, fmt.Errorf("encode the configuration of this gardenlet: %w", err)
		}
		in.Parent = parent
	}
	seed, err := gardenletdeployer.Seed(spec.Config.Raw)
	if err != nil {
		return in, err
	}
	if seed != nil {
		if err := r.observeSeed(ctx, managed, shoot, seed, &in); err != nil {
			return in, err
		}
	}
	if in.Bootstrap == v1alpha1.BootstrapNone {
		in.GardenKubeconfig, err = gardenKubeconfig(in)
	}
	return in, err
}

// observeSeed checks the Seed against its cluster and reads the Secret of its backups.
func (r *reconciler) observeSeed(
	ctx context.Context, managed *v1alpha1.ManagedSeed, shoot *corev1beta1.Shoot, seed *corev1beta1.SeedTemplate, in *gardenletdeployer.Inputs,
) error {
	if settings := seed.Spec.Settings; settings == nil || settings.VerticalPodAutoscaler == nil || settings.VerticalPodAutoscaler.Enabled {
		err := r.seed.Get(ctx, client.ObjectKey{Namespace: shoot.Status.TechnicalID, Name: vpaDeployment}, &appsv1.Deployment{})
		if err == nil {
			return fmt.Errorf("the Shoot has a VerticalPodAutoscaler, and the Seed would get a second one: " +
				"set seedConfig.spec.settings.verticalPodAutoscaler.enabled to false")
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read whether the Shoot has a VerticalPodAutoscaler: %w", err)
		}
	}
	if seed.Spec.Backup == nil || seed.Spec.Backup.CredentialsRef == nil || seed.Spec.Backup.CredentialsRef.Kind != "Secret" {
		return nil
	}
	secret, ref := &corev1.Secret{}, seed.Spec.Backup.CredentialsRef
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if err := r.objects.Get(ctx, userOf(client.ObjectKeyFromObject(managed)), key, secret); err != nil {
		return fmt.Errorf("read Secret %s of the garden, to which seedConfig.spec.backup.credentialsRef refers: %w", key, err)
	}
	in.PodAnnotations[annotationBackup] = secret.Name + "-" + backup.DigestOf(secret.Data)[:8]
	return nil
}

// gardenKubeconfig reads the kubeconfig of a gardenlet that requests no certificate. It is a file of this gardenlet, and may not refer to others:
// they would give the new gardenlet what it should not have.
func gardenKubeconfig(in gardenletdeployer.Inputs) ([]byte, error) {
	const field = "gardenClientConnection.kubeconfig"
	path := gardenletdeployer.GardenKubeconfigPath(in.Config, in.Parent)
	if path == "" {
		return nil, fmt.Errorf("%s is not set, and bootstrap None needs it: set it, or another bootstrap", field)
	}
	if _, err := kubeconfig.Read(path); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	if err := kubeconfig.CheckInline(content); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", field, path, err)
	}
	return content, nil
}
