// Package controlplane modifies the control planes that gardenlet deploys for an infrastructure. It provides the contract
// of Gardener's control plane webhooks as an interface.
package controlplane

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
)

// Context provides information for an [Ensurer] in addition to the object.
type Context interface {
	// Namespace of the Shoot in the seed.
	Namespace() string
	// Cluster reads the Shoot.
	Cluster(ctx context.Context) (*extension.Cluster, error)
}

// Ensurer modifies objects of a control plane before they are stored. Each method modifies wanted, the object that is
// about to be stored. live is the stored object, or nil if it is being created. An error rejects the object. Methods must
// be idempotent. Embed [NoEnsurer], whose methods do nothing.
type Ensurer interface {
	Workloads
	Nodes
}

// Workloads are the methods for objects in the namespace of the Shoot.
type Workloads interface {
	// EnsureKubeAPIServerService is called for the Service kube-apiserver, except when gardenlet exposes it by SNI.
	EnsureKubeAPIServerService(ctx context.Context, c Context, wanted, live *corev1.Service) error
	// EnsureKubeAPIServerDeployment is called for the Deployments kube-apiserver and virtual-garden-kube-apiserver, and so on.
	EnsureKubeAPIServerDeployment(ctx context.Context, c Context, wanted, live *appsv1.Deployment) error
	EnsureKubeControllerManagerDeployment(ctx context.Context, c Context, wanted, live *appsv1.Deployment) error
	EnsureKubeSchedulerDeployment(ctx context.Context, c Context, wanted, live *appsv1.Deployment) error
	EnsureClusterAutoscalerDeployment(ctx context.Context, c Context, wanted, live *appsv1.Deployment) error
	EnsureMachineControllerManagerDeployment(ctx context.Context, c Context, wanted, live *appsv1.Deployment) error
	EnsureVPNSeedServerDeployment(ctx context.Context, c Context, wanted, live *appsv1.Deployment) error
	EnsureResourceManagerDeployment(ctx context.Context, c Context, wanted, live *appsv1.Deployment) error
	EnsureVPNSeedServerStatefulSet(ctx context.Context, c Context, wanted, live *appsv1.StatefulSet) error
	// EnsureMachineControllerManagerVPA is called for the VerticalPodAutoscaler machine-controller-manager-vpa.
	EnsureMachineControllerManagerVPA(ctx context.Context, c Context, wanted, live *unstructured.Unstructured) error
	// EnsureEtcd is called for the Etcds etcd-main and etcd-events, with or without the prefix virtual-garden-.
	EnsureEtcd(ctx context.Context, c Context, wanted, live *druidv1alpha1.Etcd) error
	// EnsureEtcdStatefulSet is called for the StatefulSets of these names.
	EnsureEtcdStatefulSet(ctx context.Context, c Context, wanted, live *appsv1.StatefulSet) error
}

// Nodes are the methods for parts of OperatingSystemConfigs. live is nil if the stored object does not have the part.
type Nodes interface {
	// EnsureKubeletUnit modifies the options of the unit kubelet.service, see [UnitOption].
	EnsureKubeletUnit(ctx context.Context, c Context, kubeletVersion string, wanted, live []UnitOption) ([]UnitOption, error)
	// EnsureKubeletConfiguration modifies the KubeletConfiguration in the file /var/lib/kubelet/config/kubelet. It is
	// untyped, so that fields of other versions of kubelet are not lost.
	EnsureKubeletConfiguration(ctx context.Context, c Context, kubeletVersion string, wanted, live *unstructured.Unstructured) error
	// EnsureKernelSettings modifies the content of the file /etc/sysctl.d/99-k8s-general.conf.
	EnsureKernelSettings(ctx context.Context, c Context, wanted, live *string) error
	// KubeletCloudProviderConfig returns the content of the file /var/lib/kubelet/cloudprovider.conf. An empty string means no file.
	KubeletCloudProviderConfig(ctx context.Context, c Context, kubeletVersion string) (string, error)
	// EnsureUnits and EnsureFiles modify all units and files for the purpose reconcile. EnsureProvisionUnits and
	// EnsureProvisionFiles modify those for the purpose provision. See [SetFile].
	EnsureUnits(ctx context.Context, c Context, wanted *[]extensionsv1alpha1.Unit, live []extensionsv1alpha1.Unit) error
	EnsureFiles(ctx context.Context, c Context, wanted *[]extensionsv1alpha1.File, live []extensionsv1alpha1.File) error
	EnsureProvisionUnits(ctx context.Context, c Context, wanted *[]extensionsv1alpha1.Unit, live []extensionsv1alpha1.Unit) error
	EnsureProvisionFiles(ctx context.Context, c Context, wanted *[]extensionsv1alpha1.File, live []extensionsv1alpha1.File) error
	// EnsureCRIConfig modifies the configuration of the container runtime, for the purpose reconcile.
	EnsureCRIConfig(ctx context.Context, c Context, wanted, live *extensionsv1alpha1.CRIConfig) error
}

// UnitOption is an option of a systemd unit: "Name=Value" in a section.
type UnitOption struct {
	Section, Name, Value string
}
