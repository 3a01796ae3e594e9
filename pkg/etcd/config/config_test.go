package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/pkg/configfile"
)

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const operator = "apiVersion: etcdoperator.config.gardener.cloud/v1alpha1\nkind: EtcdOperatorConfiguration\n"

func TestOperator(t *testing.T) {
	config, err := LoadOperator(write(t, operator+"memberImage: a:b\n"))
	if err != nil {
		t.Fatal(err)
	}
	election := config.LeaderElection
	if !*election.LeaderElect || election.ResourceNamespace != "garden" || election.LeaseDuration.Duration != 15*time.Second ||
		config.Server.Metrics.Port != 8080 || config.Server.HealthProbes.Port != 8081 || config.Controllers.Etcd.ResourceClass != "seed" ||
		config.Controllers.Etcd.ConcurrentSyncs != 5 || config.ClientConnection.QPS != 100 {
		t.Errorf("defaults: %+v", config)
	}
	for content, want := range map[string]string{
		"":                                    "apiVersion",
		operator:                              "memberImage",
		operator + "memberImage: a\nfoo: 1\n": `unknown field "foo"`,
		operator + "memberImage: a\nlogLevel: x\n":                                 "logLevel",
		operator + "memberImage: a\nlogLevel: info\nlogLevel: info\n":              "already set",
		operator + "memberImage: a\nleaderElection: {leaseDuration: 1s}\n":         "leaseDuration",
		operator + "memberImage: a\ncontrollers: {etcd: {concurrentSyncs: -1}}\n":  "concurrentSyncs",
		operator + "memberImage: a\nserver: {metrics: {port: 70000}}\n":            "server.metrics.port",
		strings.Replace(operator, "EtcdOperator", "Other", 1) + "memberImage: a\n": "kind",
	} {
		if _, err := LoadOperator(write(t, content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
	if _, err := LoadOperator(write(t, strings.Repeat("#", configfile.MaxBytes+1))); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("for a large file: %v", err)
	}
}

const member = `apiVersion: etcdoperator.config.gardener.cloud/v1alpha1
kind: EtcdMemberConfiguration
namespace: a
etcd: e
etcdConfigFile: /etc/etcd.conf.yaml
`

func TestMember(t *testing.T) {
	config, err := LoadMember(write(t, member+"clientURL: http://{member}.e-peer.a.svc:2379\npeerURL: http://{member}.e-peer.a.svc:2380\n"))
	if err != nil || config.Program != "/etcd" || config.Heartbeat.Duration != 10*time.Second || config.StatusPort != 9095 {
		t.Errorf("%+v, %v", config, err)
	}
	for content, want := range map[string]string{
		member: "clientURL",
		member + "clientURL: https://a:1\npeerURL: http://a:2\n":              "clientTLS",
		member + "clientURL: http://a\npeerURL: http://a:2\n":                 "clientURL",
		member + "clientURL: http://a:1\npeerURL: ftp://a:2\n":                "peerURL",
		member + "clientURL: http://a:1\npeerURL: http://a:2\nstatusPort: -1": "statusPort",
	} {
		if _, err := LoadMember(write(t, content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
}
