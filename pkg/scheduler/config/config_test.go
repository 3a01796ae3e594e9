package config

import (
	"strings"
	"testing"
	"time"
)

const header = "apiVersion: scheduler.config.gardener.cloud/v1alpha1\nkind: SchedulerConfiguration\n"

// TestDefaults reads a file with all fields of Gardener, and one with none.
func TestDefaults(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "all fields": `
clientConnection: {qps: 50, burst: 100, kubeconfig: "", acceptContentTypes: "", contentType: ""}
leaderElection: {leaderElect: true, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s, resourceLock: leases, resourceNamespace: garden, resourceName: gardener-scheduler-leader-election}
logLevel: info
logFormat: json
server: {healthProbes: {bindAddress: "", port: 10251}, metrics: {bindAddress: "", port: 19251}}
debugging: {enableProfiling: false, enableContentionProfiling: false}
featureGates: {SomeFeature: true}
schedulers: {backupBucket: {concurrentSyncs: 2}, shoot: {concurrentSyncs: 5, candidateDeterminationStrategy: SameRegion}}
`} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse([]byte(header + text))
			if err != nil {
				t.Fatal(err)
			}
			election := c.LeaderElection
			if c.LogLevel != "info" || c.LogFormat != "json" || c.ClientConnection.QPS != 50 || c.ClientConnection.Burst != 100 ||
				c.Server.HealthProbes.Port != 10251 || c.Server.Metrics.Port != 19251 || c.Schedulers.BackupBucket.ConcurrentSyncs != 2 ||
				c.Schedulers.Shoot.ConcurrentSyncs != 5 || c.Schedulers.Shoot.Strategy != "SameRegion" || !*election.LeaderElect ||
				election.ResourceLock != "leases" || election.ResourceNamespace != "garden" ||
				election.ResourceName != "gardener-scheduler-leader-election" || election.LeaseDuration.Duration != 15*time.Second {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"schedulers: {shoot: {candidateDeterminationStrategy: Nearest}}": "schedulers.shoot.candidateDeterminationStrategy",
		"schedulers: {shoot: {concurrentSyncs: -1}}":                     "schedulers.shoot.concurrentSyncs",
		"schedulers: {backupBucket: {concurrentSyncs: -1}}":              "schedulers.backupBucket.concurrentSyncs",
		"schedulers: {shoots: {}}":                                       `unknown field "schedulers.shoots"`,
		"logLevel: loud":                                                 "logLevel",
		"logFormat: xml":                                                 "logFormat",
		"logLevel: info\nlogLevel: debug":                                "logLevel",
	} {
		if _, err := Parse([]byte(header + text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
	}
	if _, err := Parse([]byte("apiVersion: v1\nkind: Secret\n")); err == nil {
		t.Error("another kind is accepted")
	}
}
