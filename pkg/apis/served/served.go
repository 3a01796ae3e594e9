// Package served lists the resources of the garden's API server with their scopes, short names, subresources and
// selectable fields. The server installs these resources, and the reference documents them.
package served

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	authenticationv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
)

// Resource is a resource of the API server.
type Resource struct {
	// GroupVersionKind identifies the kind.
	schema.GroupVersionKind
	// Name is the name of the resource, in plural.
	Name string
	// ShortNames are the additional names that kubectl accepts.
	ShortNames []string
	// Namespaced reports whether objects are in namespaces.
	Namespaced bool
	// InAll reports whether the resource belongs to the category all.
	InAll bool
	// Subresources are the names of its subresources.
	Subresources []string
	// Fields are the fields that selectors support, in addition to the name and the namespace.
	Fields []string
}

// AddToScheme adds the kinds of all groups of the API server to a scheme, and the bodies of subresources.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.SchemeBuilder{
		gardencorev1beta1.AddToScheme, gardencorev1.AddToScheme, seedmanagementv1alpha1.AddToScheme, operationsv1alpha1.AddToScheme,
		securityv1alpha1.AddToScheme, settingsv1alpha1.AddToScheme, authenticationv1alpha1.AddToScheme,
	}
	return builder.AddToScheme(scheme)
}

// Of returns the resource of a kind. Its name is empty if the API server does not serve the kind.
func Of(kind schema.GroupVersionKind) Resource {
	for _, resource := range Resources() {
		if resource.GroupVersionKind == kind {
			return resource
		}
	}
	return Resource{}
}

// Resources returns all resources of the API server.
func Resources() []Resource {
	status, shootRef := []string{"status"}, []string{"spec.shootRef.name", "spec.shootRef.namespace"}
	core, seeds := gardencorev1beta1.SchemeGroupVersion, seedmanagementv1alpha1.SchemeGroupVersion
	security, operations := securityv1alpha1.SchemeGroupVersion, operationsv1alpha1.SchemeGroupVersion
	settings := settingsv1alpha1.SchemeGroupVersion
	return []Resource{
		{GroupVersionKind: core.WithKind("BackupBucket"), Name: "backupbuckets", ShortNames: []string{"bbc"}, InAll: true,
			Subresources: status, Fields: append([]string{"spec.seedName"}, shootRef...)},
		{GroupVersionKind: core.WithKind("BackupEntry"), Name: "backupentries", ShortNames: []string{"bec"}, Namespaced: true, InAll: true,
			Subresources: status, Fields: append([]string{"spec.seedName", "spec.bucketName"}, shootRef...)},
		{GroupVersionKind: core.WithKind("CloudProfile"), Name: "cloudprofiles", ShortNames: []string{"cprofile", "cpfl"}, Subresources: status},
		{GroupVersionKind: core.WithKind("NamespacedCloudProfile"), Name: "namespacedcloudprofiles", ShortNames: []string{"nsprofile", "nscpfl"},
			Namespaced: true, Subresources: status},
		{GroupVersionKind: core.WithKind("ControllerDeployment"), Name: "controllerdeployments", ShortNames: []string{"ctrldeploy"}, InAll: true},
		{GroupVersionKind: gardencorev1.SchemeGroupVersion.WithKind("ControllerDeployment"), Name: "controllerdeployments",
			ShortNames: []string{"ctrldeploy"}, InAll: true},
		{GroupVersionKind: core.WithKind("ControllerRegistration"), Name: "controllerregistrations", ShortNames: []string{"ctrlreg"},
			InAll: true},
		{GroupVersionKind: core.WithKind("ControllerInstallation"), Name: "controllerinstallations", ShortNames: []string{"ctrlinst"},
			InAll:        true,
			Subresources: status, Fields: append([]string{"spec.registrationRef.name", "spec.seedRef.name"}, shootRef...)},
		{GroupVersionKind: core.WithKind("ExposureClass"), Name: "exposureclasses", ShortNames: []string{"expclass", "expcls"}},
		{GroupVersionKind: core.WithKind("InternalSecret"), Name: "internalsecrets", ShortNames: []string{"ins"}, Namespaced: true,
			Fields: []string{"type"}},
		{GroupVersionKind: core.WithKind("Project"), Name: "projects", Subresources: status, Fields: []string{"spec.namespace"}},
		{GroupVersionKind: core.WithKind("Quota"), Name: "quotas", ShortNames: []string{"squota"}, Namespaced: true},
		{GroupVersionKind: core.WithKind("SecretBinding"), Name: "secretbindings", ShortNames: []string{"sb"}, Namespaced: true},
		{GroupVersionKind: core.WithKind("Seed"), Name: "seeds", Subresources: status},
		{GroupVersionKind: core.WithKind("Shoot"), Name: "shoots", Namespaced: true, InAll: true,
			Subresources: []string{"adminkubeconfig", "binding", "status", "viewerkubeconfig"},
			// The capital letters are Gardener's.
			Fields: []string{"spec.seedName", "status.seedName", "spec.cloudProfileName", "spec.cloudProfile.Name", "spec.cloudProfile.Kind"}},
		{GroupVersionKind: core.WithKind("ShootState"), Name: "shootstates", Namespaced: true, InAll: true},
		{GroupVersionKind: seeds.WithKind("ManagedSeed"), Name: "managedseeds", ShortNames: []string{"ms"}, Namespaced: true,
			Subresources: status, Fields: []string{"spec.shoot.name"}},
		{GroupVersionKind: seeds.WithKind("ManagedSeedSet"), Name: "managedseedsets", ShortNames: []string{"mss"}, Namespaced: true,
			Subresources: []string{"scale", "status"}},
		{GroupVersionKind: seeds.WithKind("Gardenlet"), Name: "gardenlets", ShortNames: []string{"gl", "glet"}, Namespaced: true,
			Subresources: status},
		{GroupVersionKind: operations.WithKind("Bastion"), Name: "bastions", Namespaced: true, InAll: true, Subresources: status,
			Fields: []string{"spec.seedName", "spec.shootRef.name"}},
		{GroupVersionKind: security.WithKind("CredentialsBinding"), Name: "credentialsbindings", ShortNames: []string{"cb"}, Namespaced: true},
		{GroupVersionKind: security.WithKind("WorkloadIdentity"), Name: "workloadidentities", ShortNames: []string{"wi"}, Namespaced: true,
			Subresources: []string{"token"}},
		{GroupVersionKind: settings.WithKind("ClusterOpenIDConnectPreset"), Name: "clusteropenidconnectpresets", ShortNames: []string{"coidcps"}},
		{GroupVersionKind: settings.WithKind("OpenIDConnectPreset"), Name: "openidconnectpresets", ShortNames: []string{"oidcps"}, Namespaced: true},
	}
}
