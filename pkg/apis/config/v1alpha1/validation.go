package v1alpha1

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	componentbaseconfig "k8s.io/component-base/config"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	componentbasevalidation "k8s.io/component-base/config/validation"
)

const (
	minSyncPeriod        = 15 * time.Second
	minCacheResyncPeriod = 10 * time.Second
	minTokenExpiration   = 600
	maxPort              = 65535
)

// Validate returns all problems of a defaulted configuration.
func Validate(c *ResourceManagerConfiguration) field.ErrorList {
	errs := validateClientConnection(&c.SourceClientConnection, field.NewPath("sourceClientConnection"))
	if c.TargetClientConnection != nil {
		errs = append(errs, validateClientConnection(c.TargetClientConnection, field.NewPath("targetClientConnection"))...)
	}
	errs = append(errs, ValidateLeaderElection(&c.LeaderElection, field.NewPath("leaderElection"))...)
	errs = append(errs, validateServers(&c.Server, field.NewPath("server"))...)
	errs = append(errs, oneOf(c.LogLevel, field.NewPath("logLevel"), LogLevelDebug, LogLevelInfo, LogLevelError)...)
	errs = append(errs, oneOf(c.LogFormat, field.NewPath("logFormat"), LogFormatJSON, LogFormatText)...)
	errs = append(errs, validateControllers(&c.Controllers, field.NewPath("controllers"))...)
	return append(errs, validateWebhooks(&c.Webhooks, field.NewPath("webhooks"))...)
}

func validateClientConnection(c *ClientConnection, path *field.Path) field.ErrorList {
	internal := componentbaseconfig.ClientConnectionConfiguration{QPS: c.QPS, Burst: c.Burst}
	errs := componentbasevalidation.ValidateClientConnectionConfiguration(&internal, path)
	return append(errs, durationAtLeast(c.CacheResyncPeriod, minCacheResyncPeriod, path.Child("cacheResyncPeriod"))...)
}

// ValidateLeaderElection checks the settings of leader election, with their defaults.
func ValidateLeaderElection(c *componentbaseconfigv1alpha1.LeaderElectionConfiguration, path *field.Path) field.ErrorList {
	if c.LeaderElect != nil && !*c.LeaderElect {
		return nil
	}
	errs := componentbasevalidation.ValidateLeaderElectionConfiguration(&componentbaseconfig.LeaderElectionConfiguration{
		LeaderElect:       true,
		LeaseDuration:     c.LeaseDuration,
		RenewDeadline:     c.RenewDeadline,
		RetryPeriod:       c.RetryPeriod,
		ResourceLock:      c.ResourceLock,
		ResourceName:      c.ResourceName,
		ResourceNamespace: c.ResourceNamespace,
	}, path)
	explainLeaderElection(errs, c, path)
	if c.RenewDeadline.Duration < c.RetryPeriod.Duration {
		errs = append(errs, field.Invalid(path.Child("renewDeadline"), c.RenewDeadline.Duration.String(),
			fmt.Sprintf("must be at least retryPeriod, which is %s", c.RetryPeriod.Duration)))
	}
	return errs
}

// explainLeaderElection improves two of component-base's messages. One lacks a remedy for the only setting without a
// default. The other shows the value of a different field.
func explainLeaderElection(errs field.ErrorList, c *componentbaseconfigv1alpha1.LeaderElectionConfiguration, path *field.Path) {
	for _, err := range errs {
		switch {
		case err.Field == path.Child("resourceNamespace").String():
			err.Detail = "name the namespace of the lease, or set leaderElection.leaderElect to false"
		case err.Field == path.Child("leaseDuration").String() && c.LeaseDuration.Duration > 0:
			err.BadValue = c.LeaseDuration.Duration.String()
			err.Detail = fmt.Sprintf("must be above renewDeadline, which is %s", c.RenewDeadline.Duration)
		}
	}
}

func validateServers(c *ServerConfiguration, path *field.Path) field.ErrorList {
	errs := validateServer(&c.Webhooks.Server, path.Child("webhooks"))
	errs = append(errs, validateTLS(&c.Webhooks.TLS, path.Child("webhooks", "tls"))...)
	errs = append(errs, validateServer(c.HealthProbes, path.Child("healthProbes"))...)
	errs = append(errs, validateServer(c.Metrics, path.Child("metrics"))...)
	return append(errs, validateUI(c, path)...)
}

func validateTLS(c *TLSServer, path *field.Path) field.ErrorList {
	if c.SelfManaged == nil {
		return nil
	}
	var errs field.ErrorList
	path = path.Child("selfManaged")
	if c.ServerCertDir != "" {
		errs = append(errs, field.Forbidden(path, "remove it, or serverCertDir: the certificate comes from one of them"))
	}
	for name, value := range map[string]string{"secretNamespace": c.SelfManaged.SecretNamespace, "secretName": c.SelfManaged.SecretName} {
		if value == "" {
			errs = append(errs, field.Required(path.Child(name), "must be set"))
		}
	}
	if len(c.SelfManaged.DNSNames) == 0 {
		errs = append(errs, field.Required(path.Child("dnsNames"), "must have the names by which API servers reach the webhooks"))
	}
	for i, name := range c.SelfManaged.DNSNames {
		for _, message := range validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*.")) {
			errs = append(errs, field.Invalid(path.Child("dnsNames").Index(i), name, message))
		}
	}
	return errs
}

func validateServer(c *Server, path *field.Path) field.ErrorList {
	if c == nil {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	if c.Port < 0 || c.Port > maxPort {
		return field.ErrorList{field.Invalid(path.Child("port"), c.Port, fmt.Sprintf("must be between 0 and %d", maxPort))}
	}
	return nil
}

func validateControllers(c *ControllersConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.ClusterID == nil {
		errs = append(errs, field.Required(path.Child("clusterID"), "must be set, but may be empty"))
	} else if strings.Contains(*c.ClusterID, ":") {
		errs = append(errs, field.Invalid(path.Child("clusterID"), *c.ClusterID,
			"must not contain a colon, which ends it in the origin annotation"))
	}
	errs = append(errs, setAndNotEmpty(c.ResourceClass, path.Child("resourceClass"))...)
	errs = append(errs, validateHealth(&c.Health, path.Child("health"))...)
	errs = append(errs, validateManagedResource(&c.ManagedResource, path.Child("managedResource"))...)
	if c.GarbageCollector.Enabled {
		errs = append(errs, durationAtLeast(c.GarbageCollector.SyncPeriod, minSyncPeriod, path.Child("garbageCollector", "syncPeriod"))...)
	}
	if c.CSRApprover.Enabled {
		csrPath := path.Child("csrApprover")
		errs = append(errs, atLeast(c.CSRApprover.ConcurrentSyncs, 1, csrPath.Child("concurrentSyncs"))...)
		errs = append(errs, nilOrNotEmpty(c.CSRApprover.MachineNamespace, csrPath.Child("machineNamespace"))...)
	}
	if c.TokenRequestor.Enabled {
		tokenPath := path.Child("tokenRequestor")
		errs = append(errs, atLeast(c.TokenRequestor.ConcurrentSyncs, 1, tokenPath.Child("concurrentSyncs"))...)
		errs = append(errs, namespaceNames(c.TokenRequestor.ServiceAccountNamespaces, tokenPath.Child("serviceAccountNamespaces"))...)
		errs = append(errs, namespaceNames(c.TokenRequestor.TargetSecretNamespaces, tokenPath.Child("targetSecretNamespaces"))...)
	}
	errs = append(errs, validateNetworkPolicy(&c.NetworkPolicy, path.Child("networkPolicy"))...)
	namespacesPath := path.Child("nodeCriticalComponents", "namespaces")
	for i := range c.NodeCriticalComponents.Namespaces {
		errs = append(errs, setAndNotEmpty(&c.NodeCriticalComponents.Namespaces[i], namespacesPath.Index(i))...)
	}
	return append(errs, validateDelay(&c.NodeAgentReconciliationDelay, path.Child("nodeAgentReconciliationDelay"))...)
}

func validateHealth(c *HealthConfiguration, path *field.Path) field.ErrorList {
	errs := atLeast(c.ConcurrentSyncs, 1, path.Child("concurrentSyncs"))
	errs = append(errs, durationAtLeast(c.SyncPeriod, minSyncPeriod, path.Child("syncPeriod"))...)
	errs = append(errs, oneOf(c.OtherKinds, path.Child("otherKinds"), OtherKindsFailuresOnly, OtherKindsFullStatus)...)
	if threshold := c.ProgressingThreshold; threshold != nil && threshold.Duration <= 0 {
		errs = append(errs, field.Invalid(path.Child("progressingThreshold"), threshold.Duration.String(),
			"must be above 0; leave the field out if a rollout may take any time"))
	}
	return errs
}

func validateManagedResource(c *ManagedResourceConfiguration, path *field.Path) field.ErrorList {
	errs := atLeast(c.ConcurrentSyncs, 1, path.Child("concurrentSyncs"))
	errs = append(errs, durationAtLeast(c.SyncPeriod, minSyncPeriod, path.Child("syncPeriod"))...)
	errs = append(errs, setAndNotEmpty(c.ManagedByLabelValue, path.Child("managedByLabelValue"))...)
	errs = append(errs, oneOf(c.FieldValidation, path.Child("fieldValidation"), FieldValidationWarn, FieldValidationStrict)...)
	for i, name := range c.KeepFieldsOf {
		if name == "" || name == "*" || strings.Count(name, "*") > 1 {
			errs = append(errs, field.Invalid(path.Child("keepFieldsOf").Index(i), name,
				`must be the name of a field manager, in which one "*" may stand for any text`))
		}
	}
	if c.MaxSecretSize == nil {
		return append(errs, field.Required(path.Child("maxSecretSize"), "must be set"))
	}
	if c.MaxSecretSize.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("maxSecretSize"), c.MaxSecretSize.String(), "must be above 0"))
	}
	if greatest := resource.MustParse("1Gi"); c.MaxSecretSize.Cmp(greatest) > 0 {
		errs = append(errs, field.Invalid(path.Child("maxSecretSize"), c.MaxSecretSize.String(), "must be at most 1Gi"))
	}
	return errs
}

func validateNetworkPolicy(c *NetworkPolicyConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range c.NamespaceSelectors {
		errs = append(errs, validateSelector(&c.NamespaceSelectors[i], path.Child("namespaceSelectors").Index(i))...)
	}
	if c.IngressControllerSelector != nil {
		selectorPath := path.Child("ingressControllerSelector", "podSelector")
		errs = append(errs, validateSelector(&c.IngressControllerSelector.PodSelector, selectorPath)...)
	}
	return errs
}

// validateSelector finds errors that would otherwise fail every reconcile later.
func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

func validateDelay(c *NodeAgentReconciliationDelayConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.MinDelay != nil {
		errs = append(errs, durationAtLeast(c.MinDelay, 0, path.Child("minDelay"))...)
	}
	if c.MaxDelay != nil {
		errs = append(errs, durationAtLeast(c.MaxDelay, 0, path.Child("maxDelay"))...)
	}
	if c.MinDelay != nil && c.MaxDelay != nil && c.MinDelay.Duration > c.MaxDelay.Duration {
		errs = append(errs, field.Invalid(path.Child("minDelay"), c.MinDelay.Duration.String(),
			fmt.Sprintf("must be at most maxDelay, which is %s", c.MaxDelay.Duration)))
	}
	return errs
}

func validateWebhooks(c *WebhooksConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	haPath := path.Child("highAvailabilityConfig")
	if seconds := c.HighAvailabilityConfig.DefaultNotReadyTolerationSeconds; seconds != nil {
		errs = append(errs, atLeast(seconds, 0, haPath.Child("defaultNotReadyTolerationSeconds"))...)
	}
	if seconds := c.HighAvailabilityConfig.DefaultUnreachableTolerationSeconds; seconds != nil {
		errs = append(errs, atLeast(seconds, 0, haPath.Child("defaultUnreachableTolerationSeconds"))...)
	}
	if c.ManualDeletionProtection.Enabled {
		manualPath := path.Child("manualDeletionProtection")
		for i := range c.ManualDeletionProtection.AllowedUsers {
			errs = append(errs, setAndNotEmpty(&c.ManualDeletionProtection.AllowedUsers[i], manualPath.Child("allowedUsers").Index(i))...)
		}
		for i := range c.ManualDeletionProtection.AllowedGroups {
			errs = append(errs, setAndNotEmpty(&c.ManualDeletionProtection.AllowedGroups[i], manualPath.Child("allowedGroups").Index(i))...)
		}
	}
	if c.NodeAgentAuthorizer.Enabled {
		errs = append(errs, nilOrNotEmpty(c.NodeAgentAuthorizer.MachineNamespace, path.Child("nodeAgentAuthorizer", "machineNamespace"))...)
	}
	if c.PodSchedulerName.Enabled {
		errs = append(errs, setAndNotEmpty(c.PodSchedulerName.SchedulerName, path.Child("podSchedulerName", "schedulerName"))...)
	}
	if c.ProjectedTokenMount.Enabled {
		errs = append(errs, atLeast(c.ProjectedTokenMount.ExpirationSeconds, minTokenExpiration,
			path.Child("projectedTokenMount", "expirationSeconds"))...)
	}
	tolerationsPath := path.Child("systemComponentsConfig", "podTolerations")
	return append(errs, validateTolerations(c.SystemComponentsConfig.PodTolerations, tolerationsPath)...)
}

func atLeast[T cmp.Ordered](value *T, minimum T, path *field.Path) field.ErrorList {
	if value == nil {
		return field.ErrorList{field.Required(path, fmt.Sprintf("must be at least %v", minimum))}
	}
	if *value < minimum {
		return field.ErrorList{field.Invalid(path, *value, fmt.Sprintf("must be at least %v", minimum))}
	}
	return nil
}

func durationAtLeast(value *metav1.Duration, minimum time.Duration, path *field.Path) field.ErrorList {
	if value == nil {
		return field.ErrorList{field.Required(path, fmt.Sprintf("must be at least %s", minimum))}
	}
	if value.Duration < minimum {
		return field.ErrorList{field.Invalid(path, value.Duration.String(), fmt.Sprintf("must be at least %s", minimum))}
	}
	return nil
}

func setAndNotEmpty(value *string, path *field.Path) field.ErrorList {
	if value == nil || *value == "" {
		return field.ErrorList{field.Required(path, "must not be empty")}
	}
	return nil
}

func nilOrNotEmpty(value *string, path *field.Path) field.ErrorList {
	if value != nil && *value == "" {
		return field.ErrorList{field.Invalid(path, "", "must not be empty; leave the field out if there is no such namespace")}
	}
	return nil
}

func namespaceNames(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		if len(apivalidation.ValidateNamespaceName(name, false)) > 0 {
			errs = append(errs, field.Invalid(path.Index(i), name, "must be the name of a namespace"))
		}
	}
	return errs
}

func oneOf(value string, path *field.Path, allowed ...string) field.ErrorList {
	for _, candidate := range allowed {
		if value == candidate {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}
