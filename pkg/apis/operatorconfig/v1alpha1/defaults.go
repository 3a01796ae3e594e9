package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// ofExtensions are the controllers with a default of five concurrent objects. The others have one.
var ofExtensions = []string{"extension", "extensionCare", "extensionReference", "extensionRequiredRuntime", "extensionRequiredVirtual"}

// SetDefaults sets the defaults of all unset fields. It is idempotent.
func SetDefaults(c *OperatorConfiguration) {
	defaulting.Value(&c.LogLevel, "info")
	defaulting.Value(&c.LogFormat, "json")
	for _, connection := range []*componentbaseconfigv1alpha1.ClientConnectionConfiguration{&c.RuntimeClientConnection, &c.VirtualClientConnection} {
		defaulting.Value(&connection.QPS, 100)
		defaulting.Value(&connection.Burst, 130)
	}
	election := defaulting.Object(&c.LeaderElection)
	defaulting.Value(&election.ResourceLock, "leases") // before the recommendation, which still names the removed lock type "endpoints"
	defaulting.Value(&election.ResourceNamespace, "garden")
	defaulting.Value(&election.ResourceName, "gardener-operator-leader-election")
	componentbaseconfigv1alpha1.RecommendedDefaultLeaderElectionConfiguration(election)
	defaulting.Value(&defaulting.Object(&c.Server.Webhooks).Port, 2750)
	defaulting.Value(&defaulting.Object(&c.Server.HealthProbes).Port, 2751)
	defaulting.Value(&defaulting.Object(&c.Server.Metrics).Port, 2752)
	for name, concurrency := range c.Controllers.Concurrencies() {
		syncs := 1
		if slices.Contains(ofExtensions, name) {
			syncs = 5
		}
		defaulting.Pointer(&concurrency.ConcurrentSyncs, syncs)
	}
	defaulting.Pointer(&c.Controllers.Garden.SyncPeriod, metav1.Duration{Duration: time.Hour})
	defaulting.Pointer(&c.Controllers.GardenCare.SyncPeriod, metav1.Duration{Duration: time.Minute})
	defaulting.Pointer(&c.Controllers.ExtensionCare.SyncPeriod, metav1.Duration{Duration: time.Minute})
}
