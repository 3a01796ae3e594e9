package config

import (
	"strings"
	"testing"
	"time"
)

const header = "apiVersion: operator.config.gardener.cloud/v1alpha1\nkind: OperatorConfiguration\n"

func TestDefaults(t *testing.T) {
	c, err := Parse([]byte(header))
	if err != nil {
		t.Fatal(err)
	}
	if c.RuntimeClientConnection.QPS != 100 || c.VirtualClientConnection.Burst != 130 || c.Server.Webhooks.Port != 2750 ||
		c.Server.HealthProbes.Port != 2751 || c.Server.Metrics.Port != 2752 || c.LogLevel != "info" || c.LogFormat != "json" {
		t.Errorf("the defaults are %+v", c)
	}
	if e := c.LeaderElection; e.ResourceNamespace != "garden" || e.ResourceName != "gardener-operator-leader-election" || e.ResourceLock != "leases" ||
		e.LeaseDuration.Duration != 15*time.Second {
		t.Errorf("the leader election is %+v", e)
	}
	if *c.Controllers.Garden.ConcurrentSyncs != 1 || *c.Controllers.Extension.ConcurrentSyncs != 5 ||
		c.Controllers.Garden.SyncPeriod.Duration != time.Hour || c.Controllers.GardenCare.SyncPeriod.Duration != time.Minute {
		t.Errorf("the controllers are %+v", c.Controllers)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"controllers: {project: {}}":                                          `unknown field "controllers.project"`,
		"logLevel: loud":                                                      "logLevel",
		"featureGates: {Unheard: true}":                                       "featureGates[Unheard]",
		"virtualClientConnection: {kubeconfig: file}":                         "virtualClientConnection.kubeconfig",
		"controllers: {extension: {concurrentSyncs: 0}}":                      "controllers.extension.concurrentSyncs",
		"controllers: {garden: {syncPeriod: 0s}}":                             "controllers.garden.syncPeriod",
		"controllers: {gardenCare: {conditionThresholds: [{type: Unknown}]}}": "controllers.gardenCare.conditionThresholds[0].type",
		"controllers: {extensionCare: {conditionThresholds: [{type: RuntimeHealthy, duration: -1s}]}}":                           "controllers.extensionCare.conditionThresholds[0].duration",
		"controllers: {gardenCare: {conditionThresholds: [{type: RuntimeComponentsHealthy}, {type: RuntimeComponentsHealthy}]}}": "conditionThresholds[1].type: Duplicate value",
		"controllers: {networkPolicy: {additionalNamespaceSelectors: [{matchLabels: {'a b': c}}]}}":                              "additionalNamespaceSelectors[0]",
	} {
		if _, err := Parse([]byte(header + text + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
