// Package webhooks changes control planes as this infrastructure needs them.
package webhooks

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-k8s/trellis/pkg/extension/controlplane"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

const (
	// LabelInjectedBy on the Pods of the control plane says which extension has changed them.
	LabelInjectedBy = "injected-by"
	// AnnotationExposure on the Service kube-apiserver says that load balancers of this infrastructure expose it.
	AnnotationExposure = "local.provider.extensions.gardener.cloud/exposure"
	exposureAddress    = "address"

	nameKubeControllerManager = "kube-controller-manager"
	flagCloudProvider         = "--cloud-provider"
	external                  = "external"
)

// ShootEnsurer changes the control planes of Shoots of this infrastructure. Of the programs of a control plane, only kube-controller-manager knows
// the cloud provider: kube-apiserver and kube-scheduler have no such flag any more, and would not start.
type ShootEnsurer struct{ controlplane.NoEnsurer }

var _ controlplane.Ensurer = ShootEnsurer{}

// EnsureKubeAPIServerDeployment marks the Pods.
func (ShootEnsurer) EnsureKubeAPIServerDeployment(_ context.Context, _ controlplane.Context, wanted, _ *appsv1.Deployment) error {
	mark(&wanted.Spec.Template)
	return nil
}

// EnsureKubeControllerManagerDeployment has the controllers of clouds run elsewhere.
func (ShootEnsurer) EnsureKubeControllerManagerDeployment(_ context.Context, _ controlplane.Context, wanted, _ *appsv1.Deployment) error {
	mark(&wanted.Spec.Template)
	if container := controlplane.Container(&wanted.Spec.Template.Spec, nameKubeControllerManager); container != nil {
		controlplane.SetContainerFlag(container, flagCloudProvider, external)
	}
	return nil
}

// EnsureKubeSchedulerDeployment marks the Pods.
func (ShootEnsurer) EnsureKubeSchedulerDeployment(_ context.Context, _ controlplane.Context, wanted, _ *appsv1.Deployment) error {
	mark(&wanted.Spec.Template)
	return nil
}

// EnsureKubeletConfiguration lets kubelet start on hosts with swap: machines share that of their host.
func (ShootEnsurer) EnsureKubeletConfiguration(_ context.Context, _ controlplane.Context, _ string, wanted, _ *unstructured.Unstructured) error {
	return unstructured.SetNestedField(wanted.Object, false, "failSwapOn")
}

func mark(template *corev1.PodTemplateSpec) {
	metav1.SetMetaDataLabel(&template.ObjectMeta, LabelInjectedBy, local.Name)
}

// ExposureEnsurer changes the control planes in seeds of this infrastructure, of whatever infrastructure the Shoots are.
type ExposureEnsurer struct{ controlplane.NoEnsurer }

var _ controlplane.Ensurer = ExposureEnsurer{}

// EnsureKubeAPIServerService marks the Service, if a load balancer exposes it.
func (ExposureEnsurer) EnsureKubeAPIServerService(_ context.Context, _ controlplane.Context, wanted, _ *corev1.Service) error {
	if wanted.Spec.Type == corev1.ServiceTypeLoadBalancer {
		metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, AnnotationExposure, exposureAddress)
	}
	return nil
}
