package controlplane

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// NoEnsurer is an [Ensurer] that changes nothing. Embed it and implement the methods that the infrastructure needs.
type NoEnsurer struct{}

var _ Ensurer = NoEnsurer{}

// EnsureKubeAPIServerService changes nothing.
func (NoEnsurer) EnsureKubeAPIServerService(_ context.Context, _ Context, _, _ *corev1.Service) error {
	return nil
}

// EnsureKubeAPIServerDeployment changes nothing.
func (NoEnsurer) EnsureKubeAPIServerDeployment(_ context.Context, _ Context, _, _ *appsv1.Deployment) error {
	return nil
}

// EnsureKubeControllerManagerDeployment changes nothing.
func (NoEnsurer) EnsureKubeControllerManagerDeployment(_ context.Context, _ Context, _, _ *appsv1.Deployment) error {
	return nil
}

// EnsureKubeSchedulerDeployment changes nothing.
func (NoEnsurer) EnsureKubeSchedulerDeployment(_ context.Context, _ Context, _, _ *appsv1.Deployment) error {
	return nil
}

// EnsureClusterAutoscalerDeployment changes nothing.
func (NoEnsurer) EnsureClusterAutoscalerDeployment(_ context.Context, _ Context, _, _ *appsv1.Deployment) error {
	return nil
}

// EnsureMachineControllerManagerDeployment changes nothing.
func (NoEnsurer) EnsureMachineControllerManagerDeployment(_ context.Context, _ Context, _, _ *appsv1.Deployment) error {
	return nil
}

// EnsureVPNSeedServerDeployment changes nothing.
func (NoEnsurer) EnsureVPNSeedServerDeployment(_ context.Context, _ Context, _, _ *appsv1.Deployment) error {
	return nil
}

// EnsureResourceManagerDeployment changes nothing.
func (NoEnsurer) EnsureResourceManagerDeployment(_ context.Context, _ Context, _, _ *appsv1.Deployment) error {
	return nil
}

// EnsureVPNSeedServerStatefulSet changes nothing.
func (NoEnsurer) EnsureVPNSeedServerStatefulSet(_ context.Context, _ Context, _, _ *appsv1.StatefulSet) error {
	return nil
}

// EnsureMachineControllerManagerVPA changes nothing.
func (NoEnsurer) EnsureMachineControllerManagerVPA(_ context.Context, _ Context, _, _ *unstructured.Unstructured) error {
	return nil
}

// EnsureEtcd changes nothing.
func (NoEnsurer) EnsureEtcd(_ context.Context, _ Context, _, _ *druidv1alpha1.Etcd) error {
	return nil
}

// EnsureEtcdStatefulSet changes nothing.
func (NoEnsurer) EnsureEtcdStatefulSet(_ context.Context, _ Context, _, _ *appsv1.StatefulSet) error {
	return nil
}

// EnsureKubeletUnit changes nothing.
func (NoEnsurer) EnsureKubeletUnit(_ context.Context, _ Context, _ string, wanted, _ []UnitOption) ([]UnitOption, error) {
	return wanted, nil
}

// EnsureKubeletConfiguration changes nothing.
func (NoEnsurer) EnsureKubeletConfiguration(_ context.Context, _ Context, _ string, _, _ *unstructured.Unstructured) error {
	return nil
}

// EnsureKernelSettings changes nothing.
func (NoEnsurer) EnsureKernelSettings(_ context.Context, _ Context, _, _ *string) error { return nil }

// KubeletCloudProviderConfig returns no content.
func (NoEnsurer) KubeletCloudProviderConfig(_ context.Context, _ Context, _ string) (string, error) {
	return "", nil
}

// EnsureUnits changes nothing.
func (NoEnsurer) EnsureUnits(_ context.Context, _ Context, _ *[]extensionsv1alpha1.Unit, _ []extensionsv1alpha1.Unit) error {
	return nil
}

// EnsureFiles changes nothing.
func (NoEnsurer) EnsureFiles(_ context.Context, _ Context, _ *[]extensionsv1alpha1.File, _ []extensionsv1alpha1.File) error {
	return nil
}

// EnsureProvisionUnits changes nothing.
func (NoEnsurer) EnsureProvisionUnits(_ context.Context, _ Context, _ *[]extensionsv1alpha1.Unit, _ []extensionsv1alpha1.Unit) error {
	return nil
}

// EnsureProvisionFiles changes nothing.
func (NoEnsurer) EnsureProvisionFiles(_ context.Context, _ Context, _ *[]extensionsv1alpha1.File, _ []extensionsv1alpha1.File) error {
	return nil
}

// EnsureCRIConfig changes nothing.
func (NoEnsurer) EnsureCRIConfig(_ context.Context, _ Context, _, _ *extensionsv1alpha1.CRIConfig) error {
	return nil
}
