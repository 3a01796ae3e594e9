package v1alpha1

import (
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// SetDefaults sets the defaults of all unset fields. It is idempotent.
func SetDefaults(c *SchedulerConfiguration) {
	defaulting.Value(&c.LogLevel, "info")
	defaulting.Value(&c.LogFormat, "json")
	defaulting.Value(&c.ClientConnection.QPS, 50)
	defaulting.Value(&c.ClientConnection.Burst, 100)
	election := defaulting.Object(&c.LeaderElection)
	defaulting.Value(&election.ResourceLock, "leases") // before the recommendation, which still names the removed lock type "endpoints"
	defaulting.Value(&election.ResourceNamespace, "garden")
	defaulting.Value(&election.ResourceName, "gardener-scheduler-leader-election")
	componentbaseconfigv1alpha1.RecommendedDefaultLeaderElectionConfiguration(election)
	defaulting.Value(&defaulting.Object(&c.Server.HealthProbes).Port, 10251)
	defaulting.Value(&defaulting.Object(&c.Server.Metrics).Port, 19251)
	defaulting.Value(&defaulting.Object(&c.Schedulers.BackupBucket).ConcurrentSyncs, 2)
	shoot := defaulting.Object(&c.Schedulers.Shoot)
	defaulting.Value(&shoot.ConcurrentSyncs, 5)
	defaulting.Value(&shoot.Strategy, "SameRegion")
}
