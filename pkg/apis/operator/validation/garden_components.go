package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	corevalidation "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
	"github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

// gardenerGroups are the API groups of the garden's own API server.
var gardenerGroups = []string{
	"authentication.gardener.cloud", "core.gardener.cloud", "operations.gardener.cloud", "security.gardener.cloud", "settings.gardener.cloud",
	"seedmanagement.gardener.cloud",
}

// IsGardenerResource reports whether the garden's own API server serves a resource, such as shoots.core.gardener.cloud.
func IsGardenerResource(name string) bool {
	_, group, _ := strings.Cut(name, ".")
	return slices.Contains(gardenerGroups, group)
}

// alwaysEncrypted are the resources that the garden's own API server encrypts in any case.
var alwaysEncrypted = []string{
	"controllerdeployments.core.gardener.cloud", "controllerregistrations.core.gardener.cloud", "internalsecrets.core.gardener.cloud",
	"shootstates.core.gardener.cloud",
}

// validateKubernetes checks the settings of the API server and the controller manager of Kubernetes.
func validateKubernetes(cluster *v1alpha1.VirtualCluster, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	kubernetes := cluster.Kubernetes
	if manager := kubernetes.KubeControllerManager; manager != nil {
		errs = append(errs, corevalidation.ValidateKubeControllerManagerConfig(
			&manager.KubeControllerManagerConfig, kubernetes.Version, path.Child("kubeControllerManager"))...)
	}
	server, at := kubernetes.KubeAPIServer, path.Child("kubeAPIServer")
	if server == nil {
		return errs
	}
	errs = append(errs, corevalidation.ValidateKubeAPIServerConfig(&server.KubeAPIServerConfig, kubernetes.Version, at)...)
	if webhook := server.AuditWebhook; webhook != nil {
		errs = append(errs, rules.ObjectName(webhook.KubeconfigSecretName, at.Child("auditWebhook", "kubeconfigSecretName"))...)
	}
	if server.Authentication != nil && server.Authentication.Webhook != nil {
		webhook, at := server.Authentication.Webhook, at.Child("authentication", "webhook")
		errs = append(errs, rules.ObjectName(webhook.KubeconfigSecretName, at.Child("kubeconfigSecretName"))...)
		if webhook.CacheTTL != nil && webhook.CacheTTL.Duration < 0 {
			errs = append(errs, field.Invalid(at.Child("cacheTTL"), webhook.CacheTTL.Duration.String(), "must not be negative"))
		}
	}
	for i, resource := range server.ResourcesToStoreInETCDEvents {
		errs = append(errs, rules.Required(resource.Resource, at.Child("resourcesToStoreInETCDEvents").Index(i).Child("resource"))...)
	}
	return append(errs, validateSNI(server.SNI, cluster.DNS.Domains, at.Child("sni"))...)
}

// validateSNI checks that a further certificate is not used for the API server's first name, which has a certificate of its own.
func validateSNI(sni *v1alpha1.SNI, domains []v1alpha1.DNSDomain, path *field.Path) field.ErrorList {
	if sni == nil {
		return nil
	}
	errs := rules.NotEmpty(sni.SecretName, path.Child("secretName"))
	at := path.Child("domainPatterns")
	errs = append(errs, rules.UniqueValues(sni.DomainPatterns, at)...)
	for i, pattern := range sni.DomainPatterns {
		if strings.TrimPrefix(pattern, "*.") == "" || strings.Contains(strings.TrimPrefix(pattern, "*."), "*") {
			errs = append(errs, field.Invalid(at.Index(i), pattern, "must be a name of a domain, or one behind *."))
			continue
		}
		if len(domains) > 0 && matches(pattern, apiPrefix+domains[0].Name) {
			errs = append(errs, field.Invalid(at.Index(i), pattern, fmt.Sprintf(
				"must not match %s%s, because its certificate is made by the operator", apiPrefix, domains[0].Name)))
		}
	}
	return errs
}

// validateGardener checks the settings of the garden's own components.
func validateGardener(cluster *v1alpha1.VirtualCluster, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	gardener := cluster.Gardener
	if server, at := gardener.GardenerAPIServer, path.Child("gardenerAPIServer"); server != nil {
		errs = append(errs, validateGardenerEncryption(cluster, at.Child("encryptionConfig"))...)
		errs = append(errs, rules.Unique(server.AdmissionPlugins, at.Child("admissionPlugins"), "name",
			func(plugin corev1beta1.AdmissionPlugin) string { return plugin.Name })...)
		for i, plugin := range server.AdmissionPlugins {
			errs = append(errs, rules.NotEmpty(plugin.KubeconfigSecretName, at.Child("admissionPlugins").Index(i).Child("kubeconfigSecretName"))...)
		}
		if server.AuditConfig != nil && server.AuditConfig.AuditPolicy != nil && server.AuditConfig.AuditPolicy.ConfigMapRef != nil {
			name := at.Child("auditConfig", "auditPolicy", "configMapRef", "name")
			errs = append(errs, rules.ObjectName(server.AuditConfig.AuditPolicy.ConfigMapRef.Name, name)...)
		}
		if webhook := server.AuditWebhook; webhook != nil {
			errs = append(errs, rules.ObjectName(webhook.KubeconfigSecretName, at.Child("auditWebhook", "kubeconfigSecretName"))...)
		}
	}
	if manager, at := gardener.GardenerControllerManager, path.Child("gardenerControllerManager"); manager != nil {
		for i, quota := range manager.DefaultProjectQuotas {
			errs = append(errs, rules.Selector(quota.ProjectSelector, at.Child("defaultProjectQuotas").Index(i).Child("projectSelector"))...)
		}
	}
	if manager, at := gardener.GardenerResourceManager, path.Child("gardenerResourceManager"); manager != nil {
		for i, namespace := range manager.AdditionalTargetNamespaces {
			errs = append(errs, rules.NamespaceName(namespace, at.Child("additionalTargetNamespaces").Index(i))...)
		}
	}
	return errs
}

// validateGardenerEncryption checks what the garden's own API server encrypts. Both API servers have the same provider.
func validateGardenerEncryption(cluster *v1alpha1.VirtualCluster, path *field.Path) field.ErrorList {
	config := cluster.Gardener.GardenerAPIServer.EncryptionConfig
	if config == nil {
		return nil
	}
	errs := rules.UniqueValues(config.Resources, path.Child("resources"))
	for i, name := range config.Resources {
		at := path.Child("resources").Index(i)
		resource, _, _ := strings.Cut(name, ".")
		switch {
		case slices.Contains(alwaysEncrypted, name):
			errs = append(errs, field.Forbidden(at, name+" are always encrypted"))
		case resource == "" || name != strings.ToLower(name) || strings.Contains(name, "*") || !IsGardenerResource(name):
			errs = append(errs, field.Invalid(at, name, "must be a resource of the garden's own API server, such as shoots.core.gardener.cloud"))
		}
	}
	provider := kubeEncryptionProvider(cluster)
	if config.Provider.Type != nil && provider != "" && *config.Provider.Type != provider {
		errs = append(errs, field.Invalid(path.Child("provider", "type"), *config.Provider.Type,
			fmt.Sprintf("must be that of kubeAPIServer, which is %s", provider)))
	}
	return errs
}

func kubeEncryptionProvider(cluster *v1alpha1.VirtualCluster) corev1beta1.EncryptionProviderType {
	server := cluster.Kubernetes.KubeAPIServer
	if server == nil || server.EncryptionConfig == nil {
		return ""
	}
	return ptr.Deref(server.EncryptionConfig.Provider.Type, "")
}

// encryptedResources returns the resources that the user of a Garden lets both API servers encrypt, sorted.
func encryptedResources(cluster *v1alpha1.VirtualCluster) []string {
	var all []string
	if server := cluster.Kubernetes.KubeAPIServer; server != nil && server.EncryptionConfig != nil {
		for _, resource := range server.EncryptionConfig.Resources {
			all = append(all, strings.TrimSuffix(resource, ".core"))
		}
	}
	if server := cluster.Gardener.GardenerAPIServer; server != nil && server.EncryptionConfig != nil {
		all = append(all, server.EncryptionConfig.Resources...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// validateEncryptionUpdate checks that what is encrypted, and how, changes only while no encryption key is rotated, because each
// change rewrites all encrypted objects.
func validateEncryptionUpdate(garden, old *v1alpha1.Garden) field.ErrorList {
	now, before := &garden.Spec.VirtualCluster, &old.Spec.VirtualCluster
	resources := !slices.Equal(encryptedResources(now), encryptedResources(before))
	provider := kubeEncryptionProvider(before) != "" && kubeEncryptionProvider(now) != kubeEncryptionProvider(before)
	if !resources && !provider {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("spec", "virtualCluster", "kubernetes", "kubeAPIServer", "encryptionConfig")
	if phase := phasesOf(old).etcdKey; !isOver(phase) {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf(
			"cannot be changed while .status.credentials.rotation.etcdEncryptionKey.phase is %s", phase)))
	}
	if resources && provider {
		errs = append(errs, field.Forbidden(path.Child("provider", "type"), "provider type and resources cannot be changed at the same time"))
	}
	return errs
}
