package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// SetDefaults fills in every field that is not set and has a default. Calling it again changes nothing.
func SetDefaults(c *GardenletConfiguration) {
	defaulting.Value(&c.LogLevel, "info")
	defaulting.Value(&c.LogFormat, "json")
	defaultGarden(defaulting.Object(&c.GardenClientConnection))
	defaultClient(&defaulting.Object(&c.SeedClientConnection).ClientConnectionConfiguration)
	defaultClient(&defaulting.Object(&c.ShootClientConnection).ClientConnectionConfiguration)
	defaultLeaderElection(defaulting.Object(&c.LeaderElection))
	defaulting.Value(&defaulting.Object(&c.Server.HealthProbes).Port, 2728)
	defaulting.Value(&defaulting.Object(&c.Server.Metrics).Port, 2729)
	defaultControllers(defaulting.Object(&c.Controllers))
	defaultLogging(defaulting.Object(&c.Logging))
	defaultIngress(defaulting.Object(&defaulting.Object(&c.SNI).Ingress), "istio-ingress",
		map[string]string{"app": "istio-ingressgateway", "istio": "ingressgateway"})
	for i := range c.ExposureClassHandlers {
		handler := &c.ExposureClassHandlers[i]
		defaultIngress(defaulting.Object(&defaulting.Object(&handler.SNI).Ingress), "istio-ingress-handler-"+handler.Name,
			map[string]string{"app": "istio-ingressgateway", "gardener.cloud/role": "exposureclass-handler"})
	}
	defaultETCD(defaulting.Object(&c.ETCDConfig))
	defaulting.Pointer(&defaulting.Object(&defaulting.Object(&c.Monitoring).Shoot).Enabled, true)
}

func lasting(duration time.Duration) metav1.Duration { return metav1.Duration{Duration: duration} }

func defaultClient(c *componentbaseconfigv1alpha1.ClientConnectionConfiguration) {
	defaulting.Value(&c.QPS, 50)
	defaulting.Value(&c.Burst, 100)
}

func defaultGarden(c *GardenClientConnection) {
	defaultClient(&c.ClientConnectionConfiguration)
	validity := defaulting.Object(&c.KubeconfigValidity)
	defaulting.Pointer(&validity.AutoRotationJitterPercentageMin, 70)
	defaulting.Pointer(&validity.AutoRotationJitterPercentageMax, 90)
}

func defaultLeaderElection(c *componentbaseconfigv1alpha1.LeaderElectionConfiguration) {
	defaulting.Value(&c.ResourceLock, "leases") // before the recommendation, which still names the removed lock type "endpoints"
	defaulting.Value(&c.ResourceNamespace, "garden")
	defaulting.Value(&c.ResourceName, "gardenlet-leader-election")
	componentbaseconfigv1alpha1.RecommendedDefaultLeaderElectionConfiguration(c)
}

// Most controllers work on this many objects at once.
const mostSyncs = 20

func defaultControllers(c *ControllersConfiguration) {
	defaulting.Pointer(&c.CacheSyncTimeout, lasting(2*time.Minute))
	for controller, syncs := range map[*Concurrency]int{
		defaulting.Object(&c.BackupBucket): mostSyncs, &defaulting.Object(&c.BackupEntry).Concurrency: mostSyncs,
		defaulting.Object(&c.Bastion):                mostSyncs,
		defaulting.Object(&c.ControllerInstallation): mostSyncs, &defaulting.Object(&c.ControllerInstallationCare).Concurrency: mostSyncs,
		defaulting.Object(&c.ControllerInstallationRequired): 1, &defaulting.Object(&c.Shoot).Concurrency: mostSyncs,
		&defaulting.Object(&c.ShootCare).Concurrency:  mostSyncs,
		&defaulting.Object(&c.ShootState).Concurrency: 5, &defaulting.Object(&c.NetworkPolicy).Concurrency: 5,
		&defaulting.Object(&c.ManagedSeed).Concurrency: mostSyncs,
		defaulting.Object(&c.TokenRequestor):           5, &defaulting.Object(&c.TokenRequestorWorkloadIdentity).Concurrency: 5,
		defaulting.Object(&c.VPAEvictionRequirements): 5,
	} {
		defaulting.Pointer(&controller.ConcurrentSyncs, syncs)
	}
	defaulting.Pointer(&c.ControllerInstallationCare.SyncPeriod, lasting(30*time.Second))
	defaulting.Pointer(&c.BackupEntry.DeletionGracePeriodHours, 0)
	defaulting.Pointer(&defaulting.Object(&c.Gardenlet).SyncPeriod, lasting(time.Hour))
	defaulting.Pointer(&defaulting.Object(&c.Seed).SyncPeriod, lasting(time.Minute))
	defaulting.Pointer(&c.Seed.LeaseResyncSeconds, 2)
	defaulting.Pointer(&c.Seed.LeaseResyncMissThreshold, 10)
	defaulting.Pointer(&defaulting.Object(&c.SeedCare).SyncPeriod, lasting(30*time.Second))
	defaultShoot(c)
	defaulting.Pointer(&c.ManagedSeed.SyncPeriod, lasting(time.Hour))
	defaulting.Pointer(&c.ManagedSeed.WaitSyncPeriod, lasting(15*time.Second))
	defaulting.Pointer(&c.ManagedSeed.SyncJitterPeriod, lasting(5*time.Minute))
	defaulting.Pointer(&c.ManagedSeed.JitterUpdates, false)
	defaulting.Pointer(&c.TokenRequestorWorkloadIdentity.TokenExpirationDuration, lasting(6*time.Hour))
}

func defaultShoot(c *ControllersConfiguration) {
	defaulting.Pointer(&c.Shoot.SyncPeriod, lasting(time.Hour))
	defaulting.Pointer(&c.Shoot.RetryDuration, lasting(12*time.Hour))
	defaulting.Pointer(&c.Shoot.ReconcileInMaintenanceOnly, false)
	defaulting.Pointer(&c.Shoot.RespectSyncPeriodOverwrite, false)
	defaulting.Pointer(&c.Shoot.DNSEntryTTLSeconds, 120)
	defaulting.Pointer(&defaulting.Object(&c.Shoot.Rollout).Budget, 40)
	defaulting.Pointer(&c.Shoot.Rollout.Nodes, 10)
	defaulting.Pointer(&c.Shoot.Rollout.MaxFailed, 3)
	defaulting.Pointer(&c.ShootCare.SyncPeriod, lasting(time.Minute))
	defaulting.Pointer(&c.ShootCare.StaleExtensionHealthChecks, StaleExtensionHealthChecks{Enabled: true})
	defaulting.Pointer(&c.ShootCare.StaleExtensionHealthChecks.Threshold, lasting(5*time.Minute))
	defaulting.Pointer(&c.ShootState.SyncPeriod, lasting(6*time.Hour))
}

func defaultLogging(c *Logging) {
	defaulting.Pointer(&c.Enabled, false)
	for _, backend := range []*LoggingBackend{defaulting.Object(&c.Vali), defaulting.Object(&c.VictoriaLogs)} {
		defaulting.Pointer(&backend.Enabled, *c.Enabled)
		defaulting.Pointer(&defaulting.Object(&backend.Garden).Storage, resource.MustParse("100Gi"))
	}
	defaulting.Pointer(&defaulting.Object(&c.ShootEventLogging).Enabled, *c.Enabled)
}

func defaultIngress(c *SNIIngress, namespace string, labels map[string]string) {
	defaulting.Pointer(&c.ServiceName, "istio-ingressgateway")
	defaulting.Pointer(&c.Namespace, namespace)
	if len(c.Labels) == 0 {
		c.Labels = labels
	}
}

func defaultETCD(c *ETCDConfig) {
	defaulting.Pointer(&defaulting.Object(&c.ETCDController).Workers, 50)
	defaulting.Pointer(&defaulting.Object(&c.CustodianController).Workers, 10)
	compaction := defaulting.Object(&c.BackupCompactionController)
	defaulting.Pointer(&compaction.Workers, 3)
	defaulting.Pointer(&compaction.EnableBackupCompaction, false)
	defaulting.Pointer(&compaction.EventsThreshold, 1_000_000)
	defaulting.Pointer(&compaction.MetricsScrapeWaitDuration, lasting(time.Minute))
}
