package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// SetDefaults sets the defaults of all unset fields. It is idempotent.
func SetDefaults(c *NodeAgentConfiguration) {
	defaulting.Value(&c.LogLevel, "info")
	defaulting.Value(&c.LogFormat, "json")
	defaulting.Value(&c.ClientConnection.QPS, 50)
	defaulting.Value(&c.ClientConnection.Burst, 100)
	defaulting.Value(&defaulting.Object(&c.Server.HealthProbes).Port, 2751)
	defaulting.Value(&defaulting.Object(&c.Server.Metrics).Port, 2752)
	defaulting.Pointer(&c.Controllers.OperatingSystemConfig.SyncPeriod, metav1.Duration{Duration: 10 * time.Minute})
	defaulting.Pointer(&c.Controllers.Token.SyncPeriod, metav1.Duration{Duration: time.Hour})
	defaulting.Pointer(&c.Controllers.SystemdUnitCheck.SyncPeriod, metav1.Duration{Duration: time.Minute})
	defaulting.Pointer(&c.Controllers.SystemdUnitCheck.StuckThreshold, metav1.Duration{Duration: 5 * time.Minute})
}
