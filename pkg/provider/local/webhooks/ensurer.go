// Package webhooks modifies control planes for this infrastructure.
package webhooks

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-k8s/trellis/pkg/extension/controlplane"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

const (
	// LabelInjectedBy on the Pods of the control plane is the name of the extension that has modified them.
	LabelInjectedBy = "injected-by"
	// AnnotationExposure on the Service kube-apiserver means that load balancers of this infrastructure expose it.
	AnnotationExposure = "local.provider.extensions.gardener.cloud/exposure"
	exposureAddress    = "address"

	nameKubeControllerManager = "kube-controller-manager"
	flagCloudProvider         = "--cloud-provider"
	external                  = "external"
)

// ShootEnsurer modifies the control planes of Shoots on this infrastructure. Only kube-controller-manager gets the flag
// for the cloud provider, because kube-apiserver and kube-scheduler no longer support it and would not start.
type ShootEnsurer struct{ controlplane.NoEnsurer }

var _ controlplane.Ensurer = ShootEnsurer{}

// EnsureKubeAPIServerDeployment labels the Pods.
func (ShootEnsurer) EnsureKubeAPIServerDeployment(_ context.Context, _ controlplane.Context, wanted, _ *appsv1.Deployment) error {
	mark(&wanted.Spec.Template)
	return nil
}

// EnsureKubeControllerManagerDeployment selects an external cloud provider and labels the Pods.
func (ShootEnsurer) EnsureKubeControllerManagerDeployment(_ context.Context, _ controlplane.Context, wanted, _ *appsv1.Deployment) error {
	mark(&wanted.Spec.Template)
	if container := controlplane.Container(&wanted.Spec.Template.Spec, nameKubeControllerManager); container != nil {
		controlplane.SetContainerFlag(container, flagCloudProvider, external)
	}
	return nil
}

// EnsureKubeSchedulerDeployment labels the Pods.
func (ShootEnsurer) EnsureKubeSchedulerDeployment(_ context.Context, _ controlplane.Context, wanted, _ *appsv1.Deployment) error {
	mark(&wanted.Spec.Template)
	return nil
}

// ofDisk are the signals of evictions for disks.
var ofDisk = []string{"imagefs.available", "imagefs.inodesFree", "nodefs.available", "nodefs.inodesFree"}

// EnsureKubeletConfiguration permits kubelet to start on hosts with swap or with cgroups v1, because machines share both with their host.
// They also share its disk: kubelet neither evicts Pods nor removes images to free space that others use.
func (ShootEnsurer) EnsureKubeletConfiguration(
	_ context.Context, _ controlplane.Context, _ string, wanted, _ *unstructured.Unstructured,
) error {
	var errs []error
	set := func(value any, path ...string) {
		errs = append(errs, unstructured.SetNestedField(wanted.Object, value, path...))
	}
	set(false, "failSwapOn")
	set(false, "failCgroupV1")
	for _, signal := range ofDisk {
		set("0%", "evictionHard", signal)
		set("0%", "evictionSoft", signal)
	}
	set(int64(100), "imageGCHighThresholdPercent")
	return errors.Join(errs...)
}

// mark labels Pods as modified by this extension.
func mark(template *corev1.PodTemplateSpec) {
	metav1.SetMetaDataLabel(&template.ObjectMeta, LabelInjectedBy, local.Name)
}

// ExposureEnsurer modifies the control planes of all Shoots in seeds on this infrastructure.
type ExposureEnsurer struct{ controlplane.NoEnsurer }

var _ controlplane.Ensurer = ExposureEnsurer{}

// EnsureKubeAPIServerService annotates the Service if a load balancer exposes it.
func (ExposureEnsurer) EnsureKubeAPIServerService(_ context.Context, _ controlplane.Context, wanted, _ *corev1.Service) error {
	if wanted.Spec.Type == corev1.ServiceTypeLoadBalancer {
		metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, AnnotationExposure, exposureAddress)
	}
	return nil
}
