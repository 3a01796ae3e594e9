// Package reference protects the Secrets and ConfigMaps that a Garden or an Extension refers to from deletion, with a finalizer.
package reference

import (
	"cmp"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1 "k8s.io/api/core/v1"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

// Kinds of referenced objects.
const (
	Secret    = "Secret"
	ConfigMap = "ConfigMap"
)

// Reference is a reference to an object in the namespace of the garden.
type Reference struct{ Kind, Name string }

// Of returns the references of a Garden or an Extension, sorted.
func Of(object client.Object) []Reference {
	var found []Reference
	switch object := object.(type) {
	case *operatorv1alpha1.Garden:
		found = ofGarden(object)
	case *operatorv1alpha1.Extension:
		found = ofExtension(object)
	}
	found = slices.DeleteFunc(found, func(reference Reference) bool { return reference.Name == "" })
	slices.SortFunc(found, func(a, b Reference) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(found)
}

// Uses reports whether an object still needs what it refers to: until the operator has released it.
func Uses(object client.Object) bool {
	return object.GetDeletionTimestamp() == nil || controllerutil.ContainsFinalizer(object, constants.FinalizerOperator)
}

func ofGarden(garden *operatorv1alpha1.Garden) []Reference {
	var found []Reference
	secret := func(names ...string) {
		for _, name := range names {
			found = append(found, Reference{Secret, name})
		}
	}
	spec := &garden.Spec
	if spec.DNS != nil {
		for _, provider := range spec.DNS.Providers {
			secret(provider.SecretRef.Name)
		}
	}
	if etcd := spec.VirtualCluster.ETCD; etcd != nil && etcd.Main != nil && etcd.Main.Backup != nil {
		secret(etcd.Main.Backup.SecretRef.Name)
	}
	found = append(found, ofResources(spec.Resources)...)
	if server := spec.VirtualCluster.Kubernetes.KubeAPIServer; server != nil {
		found = append(found, ofKubeAPIServer(server)...)
	}
	if server := spec.VirtualCluster.Gardener.GardenerAPIServer; server != nil {
		found = append(found, ofPlugins(server.AdmissionPlugins)...)
		found = append(found, ofAudit(server.AuditConfig, server.AuditWebhook)...)
	}
	return found
}

func ofKubeAPIServer(server *operatorv1alpha1.KubeAPIServerConfig) []Reference {
	found := append(ofPlugins(server.AdmissionPlugins), ofAudit(server.AuditConfig, server.AuditWebhook)...)
	if server.Authentication != nil && server.Authentication.Webhook != nil {
		found = append(found, Reference{Secret, server.Authentication.Webhook.KubeconfigSecretName})
	}
	if server.StructuredAuthentication != nil {
		found = append(found, Reference{ConfigMap, server.StructuredAuthentication.ConfigMapName})
	}
	if authorization := server.StructuredAuthorization; authorization != nil {
		found = append(found, Reference{ConfigMap, authorization.ConfigMapName})
		for _, kubeconfig := range authorization.Kubeconfigs {
			found = append(found, Reference{Secret, kubeconfig.SecretName})
		}
	}
	if server.SNI != nil && server.SNI.SecretName != nil {
		found = append(found, Reference{Secret, *server.SNI.SecretName})
	}
	return found
}

func ofPlugins(plugins []corev1beta1.AdmissionPlugin) []Reference {
	var found []Reference
	for _, plugin := range plugins {
		if plugin.KubeconfigSecretName != nil {
			found = append(found, Reference{Secret, *plugin.KubeconfigSecretName})
		}
	}
	return found
}

func ofAudit(audit *corev1beta1.AuditConfig, webhook *operatorv1alpha1.AuditWebhook) []Reference {
	var found []Reference
	if audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		found = append(found, Reference{ConfigMap, audit.AuditPolicy.ConfigMapRef.Name})
	}
	if webhook != nil {
		found = append(found, Reference{Secret, webhook.KubeconfigSecretName})
	}
	return found
}

func ofResources(resources []corev1beta1.NamedResourceReference) []Reference {
	var found []Reference
	for _, resource := range resources {
		found = append(found, Reference{resource.ResourceRef.Kind, resource.ResourceRef.Name})
	}
	return found
}

// ofExtension returns what the charts of an Extension need: the credentials and authorities of registries, and data of values.
func ofExtension(extension *operatorv1alpha1.Extension) []Reference {
	deployment := extension.Spec.Deployment
	if deployment == nil {
		return nil
	}
	found := ofResources(deployment.Resources)
	if one := deployment.ExtensionDeployment; one != nil {
		found = append(found, ofChart(&one.DeploymentSpec)...)
	}
	if one := deployment.AdmissionDeployment; one != nil {
		found = append(append(found, ofChart(one.RuntimeCluster)...), ofChart(one.VirtualCluster)...)
	}
	return found
}

func ofChart(deployment *operatorv1alpha1.DeploymentSpec) []Reference {
	if deployment == nil || deployment.Helm == nil || deployment.Helm.OCIRepository == nil {
		return nil
	}
	return OfRepository(deployment.Helm.OCIRepository)
}

// OfRepository returns the Secrets that pulls from an OCI repository need.
func OfRepository(repository *gardencorev1.OCIRepository) []Reference {
	var found []Reference
	for _, ref := range []*corev1.LocalObjectReference{repository.PullSecretRef, repository.CABundleSecretRef} {
		if ref != nil {
			found = append(found, Reference{Secret, ref.Name})
		}
	}
	return found
}
