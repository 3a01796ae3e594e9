package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// SetDefaults sets every unset field to its default. Calling it again changes nothing.
func SetDefaults(c *ResourceManagerConfiguration) {
	defaultClientConnection(&c.SourceClientConnection)
	setIfNil(&c.TargetClientConnection, ClientConnection{})
	defaultClientConnection(c.TargetClientConnection)
	defaultLeaderElection(&c.LeaderElection)
	defaultServer(&c.Server)
	// component-base recommends profiling, but gardener-resource-manager disables it by default.
	setIfNil(&c.Debugging.EnableProfiling, false)
	setIfNil(&c.Debugging.EnableContentionProfiling, false)
	setIfZero(&c.LogLevel, LogLevelInfo)
	setIfZero(&c.LogFormat, LogFormatJSON)
	defaultControllers(&c.Controllers)
	defaultWebhooks(&c.Webhooks)
}

// defaultClientConnection does not use component-base's recommended defaults, which have different qps and burst and a
// content type that custom resources do not support.
func defaultClientConnection(c *ClientConnection) {
	setIfZero(&c.QPS, 100)
	setIfZero(&c.Burst, 130)
	setIfNil(&c.CacheResyncPeriod, duration(24*time.Hour))
}

func defaultLeaderElection(c *componentbaseconfigv1alpha1.LeaderElectionConfiguration) {
	// Set before the recommended defaults, which still use the removed lock type "endpoints".
	setIfZero(&c.ResourceLock, "leases")
	setIfZero(&c.ResourceName, "gardener-resource-manager")
	componentbaseconfigv1alpha1.RecommendedDefaultLeaderElectionConfiguration(c)
}

func defaultServer(c *ServerConfiguration) {
	setIfZero(&c.Webhooks.Port, 9449)
	if managed := c.Webhooks.TLS.SelfManaged; managed != nil && len(managed.WebhookConfigurations) == 0 {
		managed.WebhookConfigurations = []string{"gardener-resource-manager"}
	}
	setIfNil(&c.HealthProbes, Server{})
	setIfZero(&c.HealthProbes.Port, 8081)
	setIfNil(&c.Metrics, Server{})
	setIfZero(&c.Metrics.Port, 8080)
	if c.UI != nil {
		setIfZero(&c.UI.Port, 8443)
	}
}

func defaultControllers(c *ControllersConfiguration) {
	setIfNil(&c.ClusterID, "")
	setIfNil(&c.ResourceClass, "resources")
	setIfNil(&c.CacheSyncTimeout, duration(2*time.Minute))
	setIfNil(&c.Health.ConcurrentSyncs, 5)
	setIfNil(&c.Health.SyncPeriod, duration(time.Minute))
	setIfZero(&c.Health.OtherKinds, OtherKindsFailuresOnly)
	defaultManagedResource(&c.ManagedResource)
	if c.GarbageCollector.Enabled {
		setIfNil(&c.GarbageCollector.SyncPeriod, duration(time.Hour))
	}
	defaultOptionalController(&c.CSRApprover.OptionalController, 1)
	defaultOptionalController(&c.IstioClusterConfiguration, 5)
	defaultOptionalController(&c.NetworkPolicy.OptionalController, 5)
	defaultOptionalController(&c.NodeCriticalComponents.OptionalController, 5)
	defaultOptionalController(&c.TokenRequestor.OptionalController, 5)
	defaultOptionalController(&c.TokenInvalidator, 5)
	if c.NodeCriticalComponents.Enabled {
		setIfNil(&c.NodeCriticalComponents.Backoff, duration(10*time.Second))
	}
	if c.NodeAgentReconciliationDelay.Enabled {
		setIfNil(&c.NodeAgentReconciliationDelay.MinDelay, duration(0))
		setIfNil(&c.NodeAgentReconciliationDelay.MaxDelay, duration(5*time.Minute))
	}
}

func defaultManagedResource(c *ManagedResourceConfiguration) {
	setIfNil(&c.ConcurrentSyncs, 5)
	setIfNil(&c.SyncPeriod, duration(time.Minute))
	setIfNil(&c.AlwaysUpdate, false)
	setIfNil(&c.ManagedByLabelValue, "gardener")
	setIfNil(&c.MaxSecretSize, *resource.NewQuantity(64<<20, resource.BinarySI))
	setIfZero(&c.FieldValidation, FieldValidationWarn)
}

func defaultOptionalController(c *OptionalController, concurrentSyncs int) {
	if c.Enabled {
		setIfNil(&c.ConcurrentSyncs, concurrentSyncs)
	}
}

func defaultWebhooks(c *WebhooksConfiguration) {
	if c.ManualDeletionProtection.Enabled && c.ManualDeletionProtection.AllowedUsers == nil {
		c.ManualDeletionProtection.AllowedUsers = []string{
			"system:serviceaccount:garden:gardener-operator",
			"system:serviceaccount:garden:gardener-resource-manager",
			"system:serviceaccount:garden:gardenlet",
		}
	}
	setIfNil(&c.NodeAgentAuthorizer.AuthorizeWithSelectors, false)
	if c.PodSchedulerName.Enabled {
		setIfNil(&c.PodSchedulerName.SchedulerName, "default-scheduler")
	}
	if c.ProjectedTokenMount.Enabled {
		setIfNil(&c.ProjectedTokenMount.ExpirationSeconds, 43200)
	}
}

func setIfNil[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func setIfZero[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func duration(d time.Duration) metav1.Duration {
	return metav1.Duration{Duration: d}
}
