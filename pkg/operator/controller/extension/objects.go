package extension

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/helmchart"
	"github.com/trellis-k8s/trellis/pkg/helmchart/values"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

const (
	// accountNamespace is the namespace of the ServiceAccounts of admission controllers in the virtual garden.
	accountNamespace = metav1.NamespaceSystem
	// prefixAccess is the prefix of Secrets with a token for the virtual garden.
	prefixAccess = "shoot-access-"
	// labelPodSecurity is the label of Kubernetes' Pod Security admission.
	labelPodSecurity = "pod-security.kubernetes.io/enforce"
	// annotationExtension names the Extension that a namespace of the virtual garden belongs to.
	annotationExtension = "extensions.operator.gardener.cloud/name"
	allowed             = "allowed"
)

func runtimeNamespace(extension string) string { return "runtime-extension-" + extension }

func virtualNamespace(extension string) string { return constants.PrefixExtensionNamespace + extension }

func accountName(extension string) string { return "extension-admission-" + extension }

// runtimeNamespace returns the namespace of the extension in the runtime cluster.
func (in Inputs) runtimeNamespace(name string) client.Object {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			constants.LabelGardenRole: constants.RoleExtension, highavailability.LabelConsider: "true",
			constants.LabelNetworkPolicyAccessTargetAPIServer: allowed,
		},
		Annotations: map[string]string{highavailability.AnnotationZones: in.Zones},
	}}
	if level := in.Extension.Annotations[constants.AnnotationPodSecurityEnforce]; level != "" {
		namespace.Labels[labelPodSecurity] = level
	}
	return namespace
}

// virtualNamespace returns the namespace of the admission controller in the virtual garden.
func (in Inputs) virtualNamespace(name string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		constants.LabelGardenRole: constants.RoleExtension, annotationExtension: in.Extension.Name,
	}}}
}

// access returns the Secret to which the resource-manager of the virtual garden writes a token for the admission controller.
func (in Inputs) access() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Namespace, Name: prefixAccess + accountName(in.Extension.Name),
			Labels: map[string]string{
				resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor, resourcesv1alpha1.LabelClass: resourcesv1alpha1.ClassShoot,
			},
			Annotations: map[string]string{
				resourcesv1alpha1.AnnotationServiceAccountName:      accountName(in.Extension.Name),
				resourcesv1alpha1.AnnotationServiceAccountNamespace: accountNamespace,
			},
		},
		Type: corev1.SecretTypeOpaque,
	}
}

// render renders a chart with values and those that the operator provides in the field gardener.
func (in Inputs) render(
	ctx context.Context, key flow.Key, release helmchart.Release, given *apiextensionsv1.JSON, known map[string]any,
) ([]*unstructured.Unstructured, error) {
	var raw []byte
	if given != nil {
		raw = given.Raw
	}
	all, err := in.Resources.Decode(raw)
	if err != nil {
		return nil, err
	}
	values.Merge(all, map[string]any{"gardener": known})
	objects, err := helmchart.Objects(ctx, in.Charts[key], release, all, "")
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if object.GetKind() == "Namespace" && object.GetName() == release.Namespace {
			return nil, fmt.Errorf("the chart contains the Namespace %s, which the operator creates: remove it from the chart", release.Namespace)
		}
	}
	return objects, nil
}

// registration returns the objects in the virtual garden that register the extension, and copies of what they refer to.
func (in Inputs) registration(_ context.Context, key flow.Key) (flow.Bundle, error) {
	one := deploymentOf(in.Extension).ExtensionDeployment
	deployment := &gardencorev1.ControllerDeployment{
		TypeMeta:               metav1.TypeMeta{APIVersion: gardencorev1.SchemeGroupVersion.String(), Kind: "ControllerDeployment"},
		ObjectMeta:             metav1.ObjectMeta{Name: in.Extension.Name},
		Helm:                   &gardencorev1.HelmControllerDeployment{Values: one.Values, OCIRepository: in.repository(one.Helm.OCIRepository)},
		InjectGardenKubeconfig: one.InjectGardenKubeconfig,
	}
	for _, resource := range deploymentOf(in.Extension).Resources {
		ref := resource.ResourceRef
		ref.Name = in.copyName(ref.Name)
		deployment.Resources = append(deployment.Resources, gardencorev1.NamedResourceReference{Name: resource.Name, ResourceRef: ref})
	}
	registration := &corev1beta1.ControllerRegistration{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: "ControllerRegistration"},
		ObjectMeta: metav1.ObjectMeta{Name: in.Extension.Name},
		Spec: corev1beta1.ControllerRegistrationSpec{
			Resources: registered(in.Extension.Spec.Resources),
			Deployment: &corev1beta1.ControllerRegistrationDeployment{
				Policy: one.Policy, SeedSelector: one.SeedSelector, DeploymentRefs: []corev1beta1.DeploymentRef{{Name: in.Extension.Name}},
			},
		},
	}
	if level := in.Extension.Annotations[constants.AnnotationPodSecurityEnforce]; level != "" {
		registration.Annotations = map[string]string{constants.AnnotationPodSecurityEnforce: level}
	}
	return in.bundle(key, nil, append([]client.Object{deployment, registration}, in.Copies...)), nil
}

// copyName returns the name of the copy of a Secret or ConfigMap in the virtual garden.
func (in Inputs) copyName(name string) string { return in.Extension.Name + "-" + name }

// repository returns an OCI repository that refers to the copies of Secrets in the virtual garden.
func (in Inputs) repository(from *gardencorev1.OCIRepository) *gardencorev1.OCIRepository {
	repository := from.DeepCopy()
	if repository.PullSecretRef != nil {
		repository.PullSecretRef.Name = in.copyName(repository.PullSecretRef.Name)
	}
	if repository.CABundleSecretRef != nil {
		repository.CABundleSecretRef.Name = in.copyName(repository.CABundleSecretRef.Name)
	}
	return repository
}

// registered returns the resources that Seeds and Shoots can have. The garden is served by the operator, and is not known to
// ControllerRegistrations.
func registered(resources []corev1beta1.ControllerResource) []corev1beta1.ControllerResource {
	var all []corev1beta1.ControllerResource
	garden := func(cluster corev1beta1.ClusterType) bool { return cluster == corev1beta1.ClusterTypeGarden }
	for i := range resources {
		resource := resources[i].DeepCopy()
		resource.AutoEnable = slices.DeleteFunc(resource.AutoEnable, garden)
		had := len(resource.ClusterCompatibility) > 0
		resource.ClusterCompatibility = slices.DeleteFunc(resource.ClusterCompatibility, garden)
		if had && len(resource.ClusterCompatibility) == 0 {
			continue // it serves gardens alone
		}
		all = append(all, *resource)
	}
	return all
}
