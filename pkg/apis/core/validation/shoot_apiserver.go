package validation

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const (
	maxEventTTL            = 24 * time.Hour
	minTokenExpiration     = 720 * time.Hour
	maxTokenExpiration     = 2160 * time.Hour
	maxNonMutatingInflight = 5000
	maxMutatingInflight    = 2500
)

// neverDisabled are the admission plugins of kube-apiserver without which a cluster does not work or is not safe.
var neverDisabled = []string{
	"MutatingAdmissionWebhook", "NamespaceLifecycle", "NodeRestriction", "PodSecurity", "Priority", "StorageObjectInUseProtection", "ValidatingAdmissionWebhook",
}

func validateAPIServer(server *v1beta1.KubeAPIServerConfig, c *shootContext, path *field.Path) field.ErrorList {
	errs := validateAdmissionPlugins(server.AdmissionPlugins, path.Child("admissionPlugins"))
	errs = append(errs, uniqueValues(server.APIAudiences, path.Child("apiAudiences"))...)
	for i, audience := range server.APIAudiences {
		if audience == "" || strings.Contains(audience, ",") {
			errs = append(errs, field.Invalid(path.Child("apiAudiences").Index(i), audience, "must not be empty nor have a comma"))
		}
	}
	errs = append(errs, c.removed(server.EnableAnonymousAuthentication != nil, "1.35", path.Child("enableAnonymousAuthentication"))...)
	if ttl := server.EventTTL; ttl != nil && (ttl.Duration < 0 || ttl.Duration > maxEventTTL) {
		errs = append(errs, field.Invalid(path.Child("eventTTL"), ttl.Duration.String(), "must be from 0 to 24h"))
	}
	errs = append(errs, notNegative(server.DefaultNotReadyTolerationSeconds, path.Child("defaultNotReadyTolerationSeconds"))...)
	errs = append(errs, notNegative(server.DefaultUnreachableTolerationSeconds, path.Child("defaultUnreachableTolerationSeconds"))...)
	errs = append(errs, minAllowed(server.Autoscaling, "20m", "200M", path.Child("autoscaling"))...)
	errs = append(errs, optionalOneOf(server.TLSMinVersion, path.Child("tlsMinVersion"), "VersionTLS12", "VersionTLS13")...)
	if requests := server.Requests; requests != nil {
		errs = append(errs, between(requests.MaxNonMutatingInflight, 0, maxNonMutatingInflight, path.Child("requests", "maxNonMutatingInflight"))...)
		errs = append(errs, between(requests.MaxMutatingInflight, 0, maxMutatingInflight, path.Child("requests", "maxMutatingInflight"))...)
	}
	if logging := server.Logging; logging != nil {
		errs = append(errs, notNegative(logging.Verbosity, path.Child("logging", "verbosity"))...)
		errs = append(errs, notNegative(logging.HTTPAccessVerbosity, path.Child("logging", "httpAccessVerbosity"))...)
	}
	if audit := server.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		errs = append(errs, objectName(audit.AuditPolicy.ConfigMapRef.Name, path.Child("auditConfig", "auditPolicy", "configMapRef", "name"))...)
	}
	errs = append(errs, validateServiceAccounts(server.ServiceAccountConfig, path.Child("serviceAccountConfig"))...)
	errs = append(errs, validateWatchCaches(server.WatchCacheSizes, c, path.Child("watchCacheSizes"))...)
	errs = append(errs, validateEncryption(server.EncryptionConfig, path.Child("encryptionConfig"))...)
	return append(errs, validateStructured(server, path)...)
}

func validateAdmissionPlugins(plugins []v1beta1.AdmissionPlugin, path *field.Path) field.ErrorList {
	errs := unique(plugins, path, "name", func(plugin v1beta1.AdmissionPlugin) string { return plugin.Name })
	for i, plugin := range plugins {
		errs = append(errs, required(plugin.Name, path.Index(i).Child("name"))...)
		errs = append(errs, forbidden(ptr.Deref(plugin.Disabled, false) && slices.Contains(neverDisabled, plugin.Name), path.Index(i).Child("disabled"),
			"the plugin cannot be switched off")...)
		errs = append(errs, notEmpty(plugin.KubeconfigSecretName, path.Index(i).Child("kubeconfigSecretName"))...)
	}
	return errs
}

func validateServiceAccounts(config *v1beta1.ServiceAccountConfig, path *field.Path) field.ErrorList {
	if config == nil {
		return nil
	}
	var errs field.ErrorList
	if config.Issuer != nil {
		errs = append(errs, issuer(*config.Issuer, path.Child("issuer"))...)
	}
	if expiration := config.MaxTokenExpiration; expiration != nil && expiration.Duration != 0 &&
		(expiration.Duration < minTokenExpiration || expiration.Duration > maxTokenExpiration) {
		errs = append(errs, field.Invalid(path.Child("maxTokenExpiration"), expiration.Duration.String(), "must be 0 or from 720h to 2160h"))
	}
	at := path.Child("acceptedIssuers")
	errs = append(errs, uniqueValues(config.AcceptedIssuers, at)...)
	for i, accepted := range config.AcceptedIssuers {
		errs = append(errs, issuer(accepted, at.Index(i))...)
		if config.Issuer != nil && accepted == *config.Issuer {
			errs = append(errs, field.Invalid(at.Index(i), accepted, "is the issuer already"))
		}
	}
	return errs
}

func issuer(value string, path *field.Path) field.ErrorList {
	parsed, err := url.Parse(value)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return field.ErrorList{field.Invalid(path, value, "must be a https URL without user, query and fragment")}
	}
	return nil
}

func validateWatchCaches(sizes *v1beta1.WatchCacheSizes, c *shootContext, path *field.Path) field.ErrorList {
	if sizes == nil {
		return nil
	}
	errs := c.removed(sizes.Default != nil, "1.35", path.Child("default"))
	errs = append(errs, notNegative(sizes.Default, path.Child("default"))...)
	for i, one := range sizes.Resources {
		at := path.Child("resources").Index(i)
		group := ptr.Deref(one.APIGroup, "")
		if group != strings.ToLower(group) || strings.ContainsAny(group, ", #") {
			errs = append(errs, field.Invalid(at.Child("apiGroup"), group, "must be an API group in lower case"))
		}
		errs = append(errs, required(one.Resource, at.Child("resource"))...)
		if one.Resource != strings.ToLower(one.Resource) || strings.ContainsAny(one.Resource, ",. #") {
			errs = append(errs, field.Invalid(at.Child("resource"), one.Resource, "must be a resource in lower case, without its API group"))
		}
		errs = append(errs, notNegative(&one.CacheSize, at.Child("size"))...)
	}
	return errs
}

// neverEncrypted are resources of the core group that are no objects of users.
var neverEncrypted = []string{"apiserveripinfo", "serviceipallocations", "servicenodeportallocations"}

func validateEncryption(config *v1beta1.EncryptionConfig, path *field.Path) field.ErrorList {
	if config == nil {
		return nil
	}
	errs := optionalOneOf(config.Provider.Type, path.Child("provider", "type"), v1beta1.EncryptionProviderTypeAESCBC,
		v1beta1.EncryptionProviderTypeAESGCM, v1beta1.EncryptionProviderTypeSecretbox)
	at := path.Child("resources")
	errs = append(errs, uniqueValues(config.Resources, at)...)
	for i, name := range config.Resources {
		resource, group, _ := strings.Cut(name, ".")
		core := group == "" || group == "core"
		switch {
		case name != strings.ToLower(name) || resource == "" || strings.HasSuffix(name, ".") || strings.Contains(name, "*"):
			errs = append(errs, field.Invalid(at.Index(i), name, "must be a resource in lower case, with its API group behind a dot"))
		case core && resource == "secrets":
			errs = append(errs, field.Forbidden(at.Index(i), "Secrets are always encrypted"))
		case core && slices.Contains(neverEncrypted, resource), group == "events.k8s.io", group == "extensions":
			errs = append(errs, field.Forbidden(at.Index(i), "the resource cannot be encrypted"))
		}
	}
	return errs
}

func validateStructured(server *v1beta1.KubeAPIServerConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	off := func(gate string) bool {
		on, set := server.FeatureGates[gate]
		return set && !on
	}
	if authentication, at := server.StructuredAuthentication, path.Child("structuredAuthentication"); authentication != nil {
		errs = append(errs, required(authentication.ConfigMapName, at.Child("configMapName"))...)
		errs = append(errs, forbidden(off("StructuredAuthenticationConfiguration"), at, "needs the feature gate StructuredAuthenticationConfiguration")...)
	}
	authorization, at := server.StructuredAuthorization, path.Child("structuredAuthorization")
	if authorization == nil {
		return errs
	}
	errs = append(errs, required(authorization.ConfigMapName, at.Child("configMapName"))...)
	errs = append(errs, forbidden(off("StructuredAuthorizationConfiguration"), at, "needs the feature gate StructuredAuthorizationConfiguration")...)
	if len(authorization.Kubeconfigs) == 0 {
		errs = append(errs, field.Required(at.Child("kubeconfigs"), "at least one is required"))
	}
	return errs
}
