package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/pkg/configfile"
)

const header = "apiVersion: controllermanager.config.gardener.cloud/v1alpha1\nkind: ControllerManagerConfiguration\n"

func TestDefaults(t *testing.T) {
	c, err := Parse([]byte(header))
	if err != nil {
		t.Fatal(err)
	}
	if *c.Controllers.ControllerRegistration.ConcurrentSyncs != 5 || *c.Controllers.ControllerDeployment.ConcurrentSyncs != 5 ||
		*c.Controllers.ShootStatusLabel.ConcurrentSyncs != 5 || *c.Controllers.SeedExtensionsCheck.ConcurrentSyncs != 5 ||
		c.Controllers.SeedExtensionsCheck.Threshold("ExtensionsReady") != 0 || c.Controllers.CacheSyncTimeout.Duration != 2*time.Minute || c.Server.HealthProbes.Port != 2718 || c.Server.Metrics.Port != 2719 ||
		c.LogLevel != "info" || c.LogFormat != "json" || c.GardenClientConnection.QPS != 50 || c.GardenClientConnection.Burst != 100 {
		t.Errorf("the defaults are %+v", c)
	}
	election := c.LeaderElection
	if !*election.LeaderElect || election.ResourceLock != "leases" || election.ResourceNamespace != "garden" ||
		election.ResourceName != "gardener-controller-manager-leader-election" || election.LeaseDuration.Duration != 15*time.Second {
		t.Errorf("the defaults of leader election are %+v", election)
	}
}

func TestMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                  {"", []string{"apiVersion", "kind"}},
		"another kind":             {"kind: GardenletConfiguration\napiVersion: gardenlet.config.gardener.cloud/v1alpha1\n", []string{"apiVersion: Unsupported value", "kind: Unsupported value"}},
		"values":                   {header + "logLevel: loud\nlogFormat: xml\n", []string{"logLevel", "logFormat"}},
		"a controller without one": {header + "controllers: {controllerRegistration: {concurrentSyncs: 0}}\n", []string{"controllers.controllerRegistration.concurrentSyncs"}},
		"a check without one":      {header + "controllers: {seedExtensionsCheck: {concurrentSyncs: 0}}\n", []string{"controllers.seedExtensionsCheck.concurrentSyncs"}},
		"thresholds": {header + "controllers: {seedExtensionsCheck: {conditionThresholds: [{type: Other, duration: -1s}]}}\n", []string{
			"seedExtensionsCheck.conditionThresholds[0].type: Unsupported value", "seedExtensionsCheck.conditionThresholds[0].duration: Invalid value",
		}},
		"an unknown controller": {header + "controllers: {projects: {concurrentSyncs: 1}}\n", []string{`unknown field "controllers.projects"`}},
		"projects": {header + "controllers: {project: {staleExpirationTimeDays: 1, minimumLifetimeDays: -1, quotas: [{projectSelector: {matchExpressions: [{key: a, operator: Not}]}}]}}\n", []string{
			"project.minimumLifetimeDays", "project.staleExpirationTimeDays", "project.quotas[0].config: Required", "project.quotas[0].projectSelector",
		}},
		"periods": {header + "controllers: {bastion: {maxLifetime: 0s}, event: {ttlNonShootEvents: -1s}, seed: {monitorPeriod: 0s}, shootRetry: {retryJitterPeriod: -1s}}\n", []string{
			"bastion.maxLifetime", "event.ttlNonShootEvents", "seed.monitorPeriod", "shootRetry.retryJitterPeriod",
		}},
		"a field set twice":      {header + "logLevel: info\nlogLevel: debug\n", []string{"logLevel"}},
		"no time for the caches": {header + "controllers: {cacheSyncTimeout: 0s}\n", []string{"controllers.cacheSyncTimeout"}},
		"a list":                 {"- a\n", []string{"not a ControllerManagerConfiguration"}},
		"too much":               {strings.Repeat("#", configfile.MaxBytes+1), []string{"too large"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.text))
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want an error with %q", err, want)
				}
			}
		})
	}
}

// TestExample checks that the example is complete and accepted.
func TestExample(t *testing.T) {
	c, err := Load(filepath.Join("..", "..", "..", "examples", "config", "controller-manager.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if *c.Controllers.ControllerRegistration.ConcurrentSyncs != 10 || c.Controllers.SeedExtensionsCheck.Threshold("ExtensionsReady") != time.Minute {
		t.Errorf("the example is %+v", c)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) && !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that does not exist: %v", err)
	}
}
