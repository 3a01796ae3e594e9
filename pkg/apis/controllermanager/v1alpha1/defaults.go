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
	defaulting.Pointer(&defaulting.Object(&c.Controllers.ControllerDeployment).ConcurrentSyncs, syncs)
	defaulting.Pointer(&defaulting.Object(&c.Controllers.ControllerRegistration).ConcurrentSyncs, syncs)
	defaulting.Pointer(&defaulting.Object(&c.Controllers.SeedExtensionsCheck).ConcurrentSyncs, syncs)
	hibernation := defaulting.Object(&c.Controllers.ShootHibernation)
	defaulting.Pointer(&hibernation.ConcurrentSyncs, syncs)
	defaulting.Pointer(&hibernation.TriggerDeadlineDuration, metav1.Duration{Duration: 2 * time.Hour})
	retry := defaulting.Object(&c.Controllers.ShootRetry)
	defaulting.Pointer(&retry.ConcurrentSyncs, syncs)
	defaulting.Pointer(&retry.RetryPeriod, metav1.Duration{Duration: 10 * time.Minute})
	defaulting.Pointer(&retry.RetryJitterPeriod, metav1.Duration{Duration: 5 * time.Minute})
	defaulting.Pointer(&defaulting.Object(&c.Controllers.ShootStatusLabel).ConcurrentSyncs, syncs)
}
