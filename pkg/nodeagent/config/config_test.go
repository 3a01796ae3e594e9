package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const least = `apiVersion: nodeagent.config.gardener.cloud/v1alpha1
kind: NodeAgentConfiguration
apiServer: {server: "https://api.example.com", caFile: /var/lib/gardener-node-agent/cluster-ca.crt}
controllers:
  operatingSystemConfig: {secretName: gardener-node-agent-pool, kubernetesVersion: 1.36.2}
`

func TestDefaults(t *testing.T) {
	c, err := Parse([]byte(least))
	if err != nil {
		t.Fatal(err)
	}
	if c.LogLevel != "info" || c.LogFormat != "json" || c.Server.HealthProbes.Port != 2751 || c.Server.Metrics.Port != 2752 ||
		c.ClientConnection.QPS != 50 || c.ClientConnection.Burst != 100 {
		t.Errorf("got %+v", c)
	}
	for name, periods := range map[string][2]time.Duration{
		"operatingSystemConfig": {c.Controllers.OperatingSystemConfig.SyncPeriod.Duration, 10 * time.Minute},
		"token":                 {c.Controllers.Token.SyncPeriod.Duration, time.Hour},
		"systemdUnitCheck":      {c.Controllers.SystemdUnitCheck.SyncPeriod.Duration, time.Minute},
		"stuckThreshold":        {c.Controllers.SystemdUnitCheck.StuckThreshold.Duration, 5 * time.Minute},
	} {
		if periods[0] != periods[1] {
			t.Errorf("%s: got %s, want %s", name, periods[0], periods[1])
		}
	}
}

func TestMistakes(t *testing.T) {
	_, err := Parse([]byte(`apiVersion: nodeagent.config.gardener.cloud/v1
kind: Other
logLevel: loud
logFormat: xml
apiServer: {server: "http://api.example.com", caFile: ca.crt}
bootstrap: {kubeletDataVolumeSize: 0}
unknown: 1
controllers:
  operatingSystemConfig: {syncPeriod: 1s, kubernetesVersion: new}
  token: {syncPeriod: 1s, syncConfigs: [{secretName: a, path: /a}, {path: /a}, {secretName: b, path: a/../b}]}
  systemdUnitCheck: {syncPeriod: 1s, stuckThreshold: 15s}
`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"apiVersion: Unsupported", "kind: Unsupported", "logLevel: Unsupported", "logFormat: Unsupported", "apiServer.server: Invalid",
		"apiServer.caFile: Invalid", "bootstrap.kubeletDataVolumeSize: Invalid", `unknown field "unknown"`,
		"controllers.operatingSystemConfig.syncPeriod: Invalid", "controllers.operatingSystemConfig.secretName: Required",
		"controllers.operatingSystemConfig.kubernetesVersion: Invalid", "controllers.token.syncPeriod: Invalid",
		"controllers.token.syncConfigs[1].path: Duplicate", "controllers.token.syncConfigs[1].secretName: Required",
		"controllers.token.syncConfigs[2].path: Invalid", "controllers.systemdUnitCheck.syncPeriod: Invalid",
		"controllers.systemdUnitCheck.stuckThreshold: Invalid",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

func TestFind(t *testing.T) {
	directory := t.TempDir()
	if path, err := Find(directory, "v1"); err != nil || path != filepath.Join(directory, "config.yaml") {
		t.Errorf("got %q and %v", path, err)
	}
	own := filepath.Join(directory, "config-v1.yaml")
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if path, err := Find(directory, "v1"); err != nil || path != own {
		t.Errorf("got %q and %v", path, err)
	}
}
