package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// syncs is the default number of objects that a controller reconciles concurrently.
const syncs = 5

// SetDefaults sets the defaults of all unset fields. It is idempotent.
func SetDefaults(c *ControllerManagerConfiguration) {
	defaulting.Value(&c.LogLevel, "info")
	defaulting.Value(&c.LogFormat, "json")
	defaulting.Value(&c.GardenClientConnection.QPS, 50)
	defaulting.Value(&c.GardenClientConnection.Burst, 100)
	election := defaulting.Object(&c.LeaderElection)
	defaulting.Value(&election.ResourceLock, "leases") // before the recommendation, which still names the removed lock type "endpoints"
	defaulting.Value(&election.ResourceNamespace, "garden")
	defaulting.Value(&election.ResourceName, "gardener-controller-manager-leader-election")
	componentbaseconfigv1alpha1.RecommendedDefaultLeaderElectionConfiguration(election)
	defaulting.Value(&defaulting.Object(&c.Server.HealthProbes).Port, 2718)
	defaulting.Value(&defaulting.Object(&c.Server.Metrics).Port, 2719)
	defaulting.Pointer(&c.Controllers.CacheSyncTimeout, metav1.Duration{Duration: 2 * time.Minute})
	for _, concurrency := range c.Controllers.Concurrencies() {
		defaulting.Pointer(&concurrency.ConcurrentSyncs, syncs)
	}
	setControllerDefaults(&c.Controllers)
}

// setControllerDefaults sets the defaults of settings of single controllers, which Concurrencies has allocated.
func setControllerDefaults(c *ControllersConfiguration) {
	period := func(field **metav1.Duration, value time.Duration) {
		defaulting.Pointer(field, metav1.Duration{Duration: value})
	}
	period(&c.Bastion.MaxLifetime, 24*time.Hour)
	if c.Event != nil {
		period(&c.Event.TTLNonShootEvents, time.Hour)
	}
	defaulting.Pointer(&defaulting.Object(&c.GardenletRights).Enabled, true)
	defaulting.Pointer(&c.ManagedSeedSet.MaxShootRetries, 3)
	period(&c.ManagedSeedSet.SyncPeriod, 30*time.Minute)
	defaulting.Pointer(&c.Project.MinimumLifetimeDays, 30)
	defaulting.Pointer(&c.Project.StaleGracePeriodDays, 14)
	defaulting.Pointer(&c.Project.StaleExpirationTimeDays, 90)
	period(&c.Project.StaleSyncPeriod, 12*time.Hour)
	for i := range c.Project.Quotas {
		defaulting.Object(&c.Project.Quotas[i].ProjectSelector)
	}
	period(&c.Seed.SyncPeriod, 10*time.Second)
	period(&c.Seed.MonitorPeriod, 40*time.Second)
	period(&c.Seed.ShootMonitorPeriod, 5*c.Seed.MonitorPeriod.Duration)
	period(&c.SeedBackupBucketsCheck.SyncPeriod, 30*time.Second)
	period(&c.SeedExtensionsCheck.SyncPeriod, 30*time.Second)
	period(&c.ShootHibernation.TriggerDeadlineDuration, 2*time.Hour)
	defaulting.Pointer(&c.ShootMaintenance.EnableShootControlPlaneRestarter, true)
	period(&c.ShootQuota.SyncPeriod, time.Hour)
	period(&c.ShootRetry.RetryPeriod, 10*time.Minute)
	period(&c.ShootRetry.RetryJitterPeriod, 5*time.Minute)
}
