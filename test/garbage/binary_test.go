package garbage

import (
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/test/kit"
)

// startBinary starts a resource-manager with settings for the garbage collector.
func (f *fixture) startBinary(settings string) *kit.Process {
	f.Helper()
	return kit.StartManager(f, shared.Get(f).Kubeconfig(), []string{f.namespace}, "controllers: {garbageCollector: "+settings+"}\n")
}

// TestBinaryCollectsGarbageIfEnabled checks that the configuration enables the garbage collector, which is disabled by default. No
// object is old enough to be deleted, which takes ten minutes. So the metrics have to show that it runs.
func TestBinaryCollectsGarbageIfEnabled(t *testing.T) {
	f := newFixture(t)
	f.configMaps("a", "b")
	f.secrets("s")
	p := f.startBinary("{enabled: true, syncPeriod: 15s}")
	metrics := func() string {
		_, body := p.Get(p.Metrics, "/metrics")
		return body
	}
	const success = "resource_manager_garbage_collection_last_success_timestamp_seconds"
	f.eventually("a run is complete", func() bool {
		body := metrics()
		return strings.Contains(body, success) && !strings.Contains(body, success+" 0\n")
	})
	body := metrics()
	for _, want := range []string{
		`resource_manager_garbage_candidates{kind="ConfigMap"} 2`, `resource_manager_garbage_candidates{kind="Secret"} 1`,
		`resource_manager_garbage_collected_total{kind="ConfigMap"} 0`, `resource_manager_garbage_collection_failures_total{operation="list"} 0`,
		"resource_manager_garbage_collection_last_duration_seconds ",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the metrics do not contain %s", want)
		}
	}
	if text := p.Written.String(); !strings.Contains(text, "Collected garbage") || !strings.Contains(text, `"young":3`) {
		t.Error("the log does not describe the run")
	}

	p = f.startBinary("{}")
	f.eventually("the controllers of the other resource-manager run", func() bool { return strings.Count(p.Written.String(), "Starting workers") == 2 })
	if body := metrics(); !strings.Contains(body, "controller_runtime") || strings.Contains(body, "resource_manager_garbage") || strings.Contains(p.Written.String(), "Collected garbage") {
		t.Error("the garbage collector runs although it is not enabled")
	}
	f.wantLeft("a", "b", "s")
}
