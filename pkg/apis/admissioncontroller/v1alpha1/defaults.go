package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// name is the name of the Service of the admission controller.
const name = "gardener-admission-controller"

// SetDefaults sets the defaults of all unset fields. It is idempotent.
func SetDefaults(c *AdmissionControllerConfiguration) {
	defaulting.Value(&c.LogLevel, "info")
	defaulting.Value(&c.LogFormat, "json")
	defaulting.Value(&c.GardenClientConnection.QPS, 100)
	defaulting.Value(&c.GardenClientConnection.Burst, 130)
	election := defaulting.Object(&c.LeaderElection)
	defaulting.Value(&election.ResourceLock, "leases") // before the recommendation, which still names the removed lock type "endpoints"
	defaulting.Value(&election.ResourceNamespace, "garden")
	defaulting.Value(&election.ResourceName, name+"-leader-election")
	componentbaseconfigv1alpha1.RecommendedDefaultLeaderElectionConfiguration(election)
	defaulting.Value(&c.Server.Webhooks.Port, 2721)
	defaulting.Value(&defaulting.Object(&c.Server.HealthProbes).Port, 2722)
	defaulting.Value(&defaulting.Object(&c.Server.Metrics).Port, 2723)
	if c.Server.Webhooks.TLS.ServerCertDir == "" {
		own := defaulting.Object(&c.Server.Webhooks.TLS.SelfManaged)
		defaulting.Value(&own.SecretNamespace, "garden")
		defaulting.Value(&own.SecretName, name+"-cert")
		if len(own.DNSNames) == 0 {
			own.DNSNames = []string{name, name + ".garden", name + ".garden.svc"}
		}
	}
	if limits := c.Server.ResourceAdmissionConfiguration; limits != nil {
		defaulting.Pointer(&limits.OperationMode, ModeBlock)
		for i := range limits.UnrestrictedSubjects {
			if subject := &limits.UnrestrictedSubjects[i]; subject.Kind != rbacv1.ServiceAccountKind {
				defaulting.Value(&subject.APIGroup, rbacv1.GroupName)
			}
		}
	}
}
