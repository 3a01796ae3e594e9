// Package controlplane deploys the parts of a Shoot's control plane that are specific to this infrastructure: the
// configuration of the cloud provider in the seed, and in the Shoot a StorageClass and the provisioner of its volumes.
package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	"github.com/trellis-k8s/trellis/pkg/provider/local/daemon"
)

// FlowName distinguishes the ManagedResources of ControlPlanes from others of the extension.
const FlowName = "controlplane"

// Names of the bundles, which are those of Gardener's extensions.
const (
	bundleSeed           = "extension-controlplane-configuration-seed"
	bundleShoot          = "extension-controlplane-shoot"
	bundleStorageClasses = "extension-controlplane-storageclasses"
)

const (
	configName = "cloud-provider-config"
	// provisioner is the name of the provisioner in test/landscape/binaries/provisioner.
	provisioner             = "landscape.trellis.local/directory"
	annotationDefaultClass  = "storageclass.kubernetes.io/is-default-class"
	defaultStorageClassName = "default"
	// volumesName is the name of the DaemonSet of the provisioner, and volumes the directory of the volumes on machines.
	volumesName = "provider-local-volumes"
	volumes     = "/var/lib/landscape/volumes"
)

// New returns the actuator. image is the image of the provisioner.
func New(deployer *bundles.Deployer, image string) *bundles.Actuator[*extensionsv1alpha1.ControlPlane] {
	plan := func(_ context.Context, object *extensionsv1alpha1.ControlPlane, _ *extension.Cluster) (flow.Plan, error) {
		return Plan(object, image)
	}
	return bundles.NewActuator(deployer, FlowName, plan)
}

// Plan returns the bundles of a ControlPlane. image is the image of the provisioner.
func Plan(object *extensionsv1alpha1.ControlPlane, image string) (flow.Plan, error) {
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
	shoot := bundles.Shoot(object.Namespace, bundleShoot)
	shoot.Objects = volumeProvisioner(image).Objects()
	classes := bundles.Shoot(object.Namespace, bundleStorageClasses)
	classes.Objects = []client.Object{storageClass(config)}
	return flow.Plan{Bundles: []flow.Bundle{seed, shoot, classes}}, nil
}

// volumeProvisioner returns the provisioner. A volume is a directory of the machine that the Pod runs on.
func volumeProvisioner(image string) daemon.Daemon {
	return daemon.Daemon{
		Name: volumesName, Role: "extensions.gardener.cloud:" + local.Name + ":volumes",
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "list", "watch", "update"}},
			{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"storageclasses"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
		Container: corev1.Container{
			Name: "provisioner", Image: image, Command: []string{"/local-provisioner", "-node=$(NODE_NAME)", "-directory=" + volumes},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"FOWNER", "DAC_OVERRIDE"}},
			},
		},
		Directories: map[string]string{"volumes": volumes},
	}
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
