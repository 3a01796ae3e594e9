package resourcereferencemanager

import (
	"context"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

func validateShoot(ctx context.Context, request *admission.Request, garden *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	if old == nil {
		old = &gardencorev1beta1.Shoot{}
	} else if equality.Semantic.DeepEqual(shoot.Spec, old.Spec) {
		return nil
	}
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	c := &check{ctx: ctx, request: request, garden: garden}
	c.names(shoot, &old.Spec)
	c.resources(field.NewPath("spec", "resources"), shoot.Namespace, shoot.Spec.Resources, old.Spec.Resources)
	c.providers(shoot, old.Spec.DNS)
	c.files(shoot, &old.Spec)
	return c.result()
}

// names judges the objects of the garden's API that a Shoot names.
func (c *check) names(shoot *gardencorev1beta1.Shoot, old *gardencorev1beta1.ShootSpec) {
	spec, path := &shoot.Spec, field.NewPath("spec")
	if reference := cloudprofile.ReferenceOf(spec); reference.Name != "" && reference != cloudprofile.ReferenceOf(old) {
		if reference.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
			known(c, path.Child("cloudProfile"), c.garden.NamespacedCloudProfiles, reference.Kind, shoot.Namespace, reference.Name)
		} else {
			known(c, path.Child("cloudProfile"), c.garden.CloudProfiles, reference.Kind, "", reference.Name)
		}
	}
	if name := changed(spec.SeedName, old.SeedName); name != "" {
		known(c, path.Child("seedName"), c.garden.Seeds, "Seed", "", name)
	}
	if name := changed(spec.SecretBindingName, old.SecretBindingName); name != "" {
		known(c, path.Child("secretBindingName"), c.garden.SecretBindings, admission.KindSecretBinding, shoot.Namespace, name)
	}
	if name := changed(spec.CredentialsBindingName, old.CredentialsBindingName); name != "" {
		known(c, path.Child("credentialsBindingName"), c.garden.CredentialsBindings, admission.KindCredentialsBinding, shoot.Namespace, name)
	}
	if name := changed(spec.ExposureClassName, old.ExposureClassName); name != "" {
		known(c, path.Child("exposureClassName"), c.garden.ExposureClasses, "ExposureClass", "", name)
	}
}

// changed returns a name that is not the stored one; empty if it is.
func changed(name, old *string) string {
	if name == nil || old != nil && *name == *old {
		return ""
	}
	return *name
}

// resources judges the objects that are copied for extensions.
func (c *check) resources(path *field.Path, namespace string, resources, old []gardencorev1beta1.NamedResourceReference) {
	for i, one := range resources {
		stored := slices.ContainsFunc(old, func(before gardencorev1beta1.NamedResourceReference) bool {
			return before.ResourceRef == one.ResourceRef
		})
		if !stored {
			c.resource(path.Index(i).Child("resourceRef"), one.ResourceRef.APIVersion, one.ResourceRef.Kind, namespace, one.ResourceRef.Name)
		}
	}
}

// providers judges the credentials of DNS providers.
func (c *check) providers(shoot *gardencorev1beta1.Shoot, old *gardencorev1beta1.DNS) {
	if shoot.Spec.DNS == nil {
		return
	}
	var stored []autoscalingv1.CrossVersionObjectReference
	if old != nil {
		for i := range old.Providers {
			if reference := credentials(&old.Providers[i]); reference != nil {
				stored = append(stored, *reference)
			}
		}
	}
	for i := range shoot.Spec.DNS.Providers {
		reference := credentials(&shoot.Spec.DNS.Providers[i])
		if reference == nil || slices.Contains(stored, *reference) {
			continue
		}
		path := field.NewPath("spec", "dns", "providers").Index(i).Child("credentialsRef")
		group, err := schema.ParseGroupVersion(reference.APIVersion)
		if err != nil {
			c.refuse(path.Child("apiVersion"), "%v", err)
			continue
		}
		c.exists(path, group.WithKind(reference.Kind), shoot.Namespace, reference.Name)
	}
}

// credentials returns the reference to the credentials of a provider, from either field; nil if it has none.
func credentials(provider *gardencorev1beta1.DNSProvider) *autoscalingv1.CrossVersionObjectReference {
	if provider.CredentialsRef != nil {
		return provider.CredentialsRef
	}
	if name := ptr.Deref(provider.SecretName, ""); name != "" {
		return &autoscalingv1.CrossVersionObjectReference{APIVersion: secretKind.Version, Kind: secretKind.Kind, Name: name}
	}
	return nil
}

// files judges the ConfigMaps and Secrets that kube-apiserver gets as files.
func (c *check) files(shoot *gardencorev1beta1.Shoot, old *gardencorev1beta1.ShootSpec) {
	stored := filesOf(old)
	for _, one := range filesOf(&shoot.Spec) {
		known := slices.ContainsFunc(stored, func(before file) bool { return before.kind == one.kind && before.name == one.name })
		if !known {
			c.exists(one.path, one.kind, shoot.Namespace, one.name)
		}
	}
}

// file is an object that kube-apiserver gets as a file.
type file struct {
	path *field.Path
	kind schema.GroupVersionKind
	name string
}

func filesOf(spec *gardencorev1beta1.ShootSpec) []file {
	server := spec.Kubernetes.KubeAPIServer
	if server == nil {
		return nil
	}
	var files []file
	add := func(path *field.Path, kind schema.GroupVersionKind, name string) {
		if name != "" {
			files = append(files, file{path, kind, name})
		}
	}
	path := field.NewPath("spec", "kubernetes", "kubeAPIServer")
	for i, plugin := range server.AdmissionPlugins {
		add(path.Child("admissionPlugins").Index(i).Child("kubeconfigSecretName"), secretKind, ptr.Deref(plugin.KubeconfigSecretName, ""))
	}
	if authentication := server.StructuredAuthentication; authentication != nil {
		add(path.Child("structuredAuthentication", "configMapName"), configMapKind, authentication.ConfigMapName)
	}
	if authorization := server.StructuredAuthorization; authorization != nil {
		at := path.Child("structuredAuthorization")
		add(at.Child("configMapName"), configMapKind, authorization.ConfigMapName)
		for i, kubeconfig := range authorization.Kubeconfigs {
			add(at.Child("kubeconfigs").Index(i).Child("secretName"), secretKind, kubeconfig.SecretName)
		}
	}
	return files
}
