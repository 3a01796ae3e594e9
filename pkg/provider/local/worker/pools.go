package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/providerlocal/validation"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/workerpool"
)

// pools resolves the references of a Worker's pools, and returns the machine images that they use. Errors that users must
// resolve have the code for configuration problems.
func pools(
	ctx context.Context, reader client.Reader, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster,
) ([]Pool, []providerlocalv1alpha1.WorkerMachineImage, error) {
	profile, err := providerlocalv1alpha1.Decode[providerlocalv1alpha1.CloudProfileConfig](cluster.CloudProfile.Spec.ProviderConfig)
	if err != nil {
		return nil, nil, extension.ConfigurationProblem(fmt.Errorf(
			"decode the providerConfig of CloudProfile %s: %w", cluster.CloudProfile.Name, err))
	}
	before, err := providerlocalv1alpha1.Decode[providerlocalv1alpha1.WorkerStatus](worker.Status.ProviderStatus)
	if err != nil {
		before = nil // written by another version; it is overwritten
	}
	hashes := inPlaceHashes(cluster.Shoot)
	var found []Pool
	var used []providerlocalv1alpha1.WorkerMachineImage
	for i, one := range worker.Spec.Pools {
		pool := Pool{WorkerPool: one, InPlaceHash: hashes[one.Name]}
		if pool.Config, err = workerConfig(one, field.NewPath("spec", "pools").Index(i).Child("providerConfig")); err != nil {
			return nil, nil, extension.ConfigurationProblem(err)
		}
		image, known := findImage(profile, before, one.MachineImage)
		if !known {
			return nil, nil, extension.ConfigurationProblem(fmt.Errorf(
				"pool %s uses version %s of the machine image %s, for which CloudProfile %s has no container image: "+
					"add it to the machineImages in its providerConfig",
				one.Name, one.MachineImage.Version, one.MachineImage.Name, cluster.CloudProfile.Name))
		}
		pool.Image = image.Image
		if pool.UserData, err = userData(ctx, reader, worker.Namespace, one); err != nil {
			return nil, nil, err
		}
		found = append(found, pool)
		used = append(used, image)
	}
	slices.SortFunc(used, func(a, b providerlocalv1alpha1.WorkerMachineImage) int {
		return strings.Compare(a.Name+" "+a.Version, b.Name+" "+b.Version)
	})
	return found, slices.Compact(used), nil
}

// inPlaceHashes returns the hashes of what is updated in place, by the names of the pools. Pools whose machines are replaced, and those that
// are not valid, have none.
func inPlaceHashes(shoot *corev1beta1.Shoot) map[string]string {
	hashes := map[string]string{}
	all, _ := workerpool.Of(shoot, nil) // the pools that are valid are returned, too
	for _, pool := range all {
		if pool.Version != nil && pool.InPlace() {
			hashes[pool.Worker.Name] = pool.InPlaceHash()
		}
	}
	return hashes
}

// workerConfig decodes and validates the provider configuration of a pool.
func workerConfig(pool extensionsv1alpha1.WorkerPool, path *field.Path) (*providerlocalv1alpha1.WorkerConfig, error) {
	config, err := providerlocalv1alpha1.Decode[providerlocalv1alpha1.WorkerConfig](pool.ProviderConfig)
	if err != nil {
		return nil, fmt.Errorf("decode %s of pool %s: %w", path, pool.Name, err)
	}
	if config == nil {
		return nil, nil
	}
	return config, validation.ValidateWorkerConfig(config, path).ToAggregate()
}

// findImage returns the container image of a machine image from the CloudProfile. If it is no longer there, it returns the one in use.
func findImage(
	profile *providerlocalv1alpha1.CloudProfileConfig, before *providerlocalv1alpha1.WorkerStatus, wanted extensionsv1alpha1.MachineImage,
) (providerlocalv1alpha1.WorkerMachineImage, bool) {
	if image, known := validation.FindImage(profile, wanted.Name, wanted.Version); known {
		return providerlocalv1alpha1.WorkerMachineImage{Name: wanted.Name, Version: wanted.Version, Image: image}, true
	}
	if before != nil {
		for _, image := range before.MachineImages {
			if image.Name == wanted.Name && image.Version == wanted.Version {
				return image, true
			}
		}
	}
	return providerlocalv1alpha1.WorkerMachineImage{}, false
}

// userData reads the user data of a pool.
func userData(ctx context.Context, reader client.Reader, namespace string, pool extensionsv1alpha1.WorkerPool) ([]byte, error) {
	reference := pool.UserDataSecretRef
	secret := &corev1.Secret{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, secret); err != nil {
		return nil, fmt.Errorf("read the user data of pool %s: %w", pool.Name, err)
	}
	data, found := secret.Data[reference.Key]
	if !found {
		return nil, fmt.Errorf(
			"the Secret %s/%s with the user data of pool %s has no key %q", namespace, reference.Name, pool.Name, reference.Key,
		)
	}
	return data, nil
}
