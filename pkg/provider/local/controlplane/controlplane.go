// Package controlplane deploys the parts of a Shoot's control plane that are specific to this infrastructure: the
// configuration of the cloud provider in the seed, and a StorageClass in the Shoot.
package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// FlowName distinguishes the ManagedResources of ControlPlanes from others of the extension.
const FlowName = "controlplane"

// Names of the bundles, which are those of Gardener's extensions.
const (
	bundleSeed           = "extension-controlplane-configuration-seed"
	bundleStorageClasses = "extension-controlplane-storageclasses"
)

const (
	configName = "cloud-provider-config"
	// provisioner is the name of the provisioner in test/landscape/binaries/provisioner.
	provisioner             = "landscape.trellis.local/directory"
	annotationDefaultClass  = "storageclass.kubernetes.io/is-default-class"
	defaultStorageClassName = "default"
)

// New returns the actuator.
func New(deployer *bundles.Deployer) *bundles.Actuator[*extensionsv1alpha1.ControlPlane] {
	plan := func(_ context.Context, object *extensionsv1alpha1.ControlPlane, _ *extension.Cluster) (flow.Plan, error) {
		return Plan(object)
	}
	return bundles.NewActuator(deployer, FlowName, plan)
}

// Plan returns the bundles of a ControlPlane.
func Plan(object *extensionsv1alpha1.ControlPlane) (flow.Plan, error) {
	config, err := providerlocalv1alpha1.Decode[providerlocalv1alpha1.ControlPlaneConfig](object.Spec.ProviderConfig)
	if err != nil {
		return flow.Plan{}, extension.ConfigurationProblem(fmt.Errorf("decode spec.providerConfig: %w", err))
	}
	seed := bundles.Seed(object.Namespace, bundleSeed)
	seed.Objects = []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: configName},
		Data: map[string]string{"config.yaml": fmt.Sprintf("namespace: %s\nregion: %s\n",
			local.InfrastructureNamespace(object.Namespace), object.Spec.Region)},
	}}
	shoot := bundles.Shoot(object.Namespace, bundleStorageClasses)
	shoot.Objects = []client.Object{storageClass(config)}
	return flow.Plan{Bundles: []flow.Bundle{seed, shoot}}, nil
}

// storageClass returns the default StorageClass.
func storageClass(config *providerlocalv1alpha1.ControlPlaneConfig) *storagev1.StorageClass {
	isDefault := config == nil || config.Storage == nil || ptr.Deref(config.Storage.ManagedDefaultStorageClass, true)
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: defaultStorageClassName, Annotations: map[string]string{annotationDefaultClass: fmt.Sprintf("%t", isDefault)},
		},
		Provisioner: provisioner, ReclaimPolicy: ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	}
}
