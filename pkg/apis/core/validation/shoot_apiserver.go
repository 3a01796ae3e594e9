package validation

import (
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
)

const (
	maxEventTTL            = 24 * time.Hour
	minTokenExpiration     = 720 * time.Hour
	maxTokenExpiration     = 2160 * time.Hour
	maxNonMutatingInflight = 5000
	maxMutatingInflight    = 2500
)

func validateAPIServer(server *v1beta1.KubeAPIServerConfig, c *shootContext, path *field.Path) field.ErrorList {
	errs := validateAdmissionPlugins(server.AdmissionPlugins, c, path.Child("admissionPlugins"))
	errs = append(errs, featureGates(server.FeatureGates, c, path.Child("featureGates"))...)
	errs = append(errs, validateRuntimeConfig(server.RuntimeConfig, c, path.Child("runtimeConfig"))...)
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
		errs = append(errs, between(requests.MaxNonMutatingInflight, 0, maxNonMutatingInflight,
			path.Child("requests", "maxNonMutatingInflight"))...)
		errs = append(errs, between(requests.MaxMutatingInflight, 0, maxMutatingInflight, path.Child("requests", "maxMutatingInflight"))...)
	}
	if logging := server.Logging; logging != nil {
		errs = append(errs, notNegative(logging.Verbosity, path.Child("logging", "verbosity"))...)
		errs = append(errs, notNegative(logging.HTTPAccessVerbosity, path.Child("logging", "httpAccessVerbosity"))...)
	}
	if audit := server.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		ref, at := audit.AuditPolicy.ConfigMapRef, path.Child("auditConfig", "auditPolicy", "configMapRef")
		errs = append(errs, objectName(ref.Name, at.Child("name"))...)
		if ref.Namespace != "" {
			errs = append(errs, namespaceName(ref.Namespace, at.Child("namespace"))...)
		}
	}
	errs = append(errs, validateServiceAccounts(server.ServiceAccountConfig, c, path.Child("serviceAccountConfig"))...)
	errs = append(errs, validateWatchCaches(server.WatchCacheSizes, c, path.Child("watchCacheSizes"))...)
	errs = append(errs, validateEncryption(server.EncryptionConfig, path.Child("encryptionConfig"))...)
	return append(errs, validateStructured(server, path)...)
}

func validateServiceAccounts(config *v1beta1.ServiceAccountConfig, c *shootContext, path *field.Path) field.ErrorList {
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
	if c.sameIssuers { // unchanged issuers might be older than the check
		return errs
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

func validateStructured(server *v1beta1.KubeAPIServerConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	off := func(gate string) bool {
		on, set := server.FeatureGates[gate]
		return set && !on
	}
	if authentication, at := server.StructuredAuthentication, path.Child("structuredAuthentication"); authentication != nil {
		errs = append(errs, required(authentication.ConfigMapName, at.Child("configMapName"))...)
		errs = append(errs, forbidden(off("StructuredAuthenticationConfiguration"), at,
			"needs the feature gate StructuredAuthenticationConfiguration")...)
	}
	if oidc, at := server.OIDCConfig, path.Child("oidcConfig"); oidc != nil {
		errs = append(errs, rules.OpenIDConnect(ptr.Deref(oidc.ClientID, ""), ptr.Deref(oidc.IssuerURL, ""), oidc.CABundle, oidc.SigningAlgs, at)...)
		errs = append(errs, forbidden(server.StructuredAuthentication != nil, at, "cannot be combined with structuredAuthentication")...)
	}
	authorization, at := server.StructuredAuthorization, path.Child("structuredAuthorization")
	if authorization == nil {
		return errs
	}
	errs = append(errs, required(authorization.ConfigMapName, at.Child("configMapName"))...)
	errs = append(errs, forbidden(off("StructuredAuthorizationConfiguration"), at,
		"needs the feature gate StructuredAuthorizationConfiguration")...)
	if len(authorization.Kubeconfigs) == 0 {
		errs = append(errs, field.Required(at.Child("kubeconfigs"), "at least one is required"))
	}
	for i, kubeconfig := range authorization.Kubeconfigs {
		errs = append(errs, required(kubeconfig.AuthorizerName, at.Child("kubeconfigs").Index(i).Child("authorizerName"))...)
		errs = append(errs, required(kubeconfig.SecretName, at.Child("kubeconfigs").Index(i).Child("secretName"))...)
	}
	return errs
}
