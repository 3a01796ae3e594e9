package garbage

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

// output is what a process writes.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(data)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, listener.Close())
	_, port, err := net.SplitHostPort(listener.Addr().String())
	must(t, err)
	return port
}

// startBinary starts a resource-manager with settings of the garbage collector. It returns its log and the address of its metrics.
func (f *fixture) startBinary(binary, settings string) (log *output, metrics string) {
	f.Helper()
	directory := f.TempDir()
	kubeconfig, config := filepath.Join(directory, "kubeconfig"), filepath.Join(directory, "config.yaml")
	must(f, os.WriteFile(kubeconfig, shared.Get(f).Kubeconfig(), 0o600))
	port := freePort(f.T)
	must(f, os.WriteFile(config, fmt.Appendf(nil, `apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
sourceClientConnection: {kubeconfig: %[1]s, namespaces: [%[2]s]}
targetClientConnection: {kubeconfig: %[1]s, namespaces: [%[2]s]}
server:
  healthProbes: {bindAddress: 127.0.0.1, port: %[3]s}
  metrics: {bindAddress: 127.0.0.1, port: %[4]s}
leaderElection: {leaderElect: false}
controllers: {garbageCollector: %[5]s}
`, kubeconfig, f.namespace, freePort(f.T), port, settings), 0o600))
	log = &output{}
	command := exec.Command(binary, "--config", config)
	command.Stdout, command.Stderr, command.SysProcAttr = log, log, &syscall.SysProcAttr{Setpgid: true}
	must(f, command.Start())
	f.Cleanup(func() {
		_ = command.Process.Kill()
		_, _ = command.Process.Wait()
		if f.Failed() {
			f.Logf("log of the resource-manager:\n%s", log)
		}
	})
	return log, "http://127.0.0.1:" + port + "/metrics"
}

func (f *fixture) get(address string) string {
	f.Helper()
	response, err := (&http.Client{Timeout: 5 * time.Second}).Get(address)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(f, err)
	return string(body)
}

// TestBinaryCollectsGarbageIfEnabled: the configuration enables the garbage collector, which is disabled by default. What it
// deletes would be ten minutes old, so the metrics tell that it runs.
func TestBinaryCollectsGarbageIfEnabled(t *testing.T) {
	f := newFixture(t)
	f.configMaps("a", "b")
	f.secrets("s")
	root, err := controlplane.RepositoryRoot()
	must(t, err)
	binary := filepath.Join(t.TempDir(), "resource-manager")
	if text, err := exec.Command("go", "build", "-C", root, "-o", binary, "./cmd/resource-manager").CombinedOutput(); err != nil {
		t.Fatalf("build the resource-manager: %v\n%s", err, text)
	}
	log, metrics := f.startBinary(binary, "{enabled: true, syncPeriod: 15s}")
	const success = "resource_manager_garbage_collection_last_success_timestamp_seconds"
	f.eventually("a run is over", func() bool {
		body := f.get(metrics)
		return strings.Contains(body, success) && !strings.Contains(body, success+" 0\n")
	})
	body := f.get(metrics)
	for _, want := range []string{
		`resource_manager_garbage_candidates{kind="ConfigMap"} 2`, `resource_manager_garbage_candidates{kind="Secret"} 1`,
		`resource_manager_garbage_collected_total{kind="ConfigMap"} 0`, `resource_manager_garbage_collection_failures_total{operation="list"} 0`,
		"resource_manager_garbage_collection_last_duration_seconds ",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	if text := log.String(); !strings.Contains(text, "Collected garbage") || !strings.Contains(text, `"young":3`) || strings.Contains(text, "does not have yet") {
		t.Error("the log does not tell what was done")
	}

	log, metrics = f.startBinary(binary, "{}")
	f.eventually("the controllers of the other one run", func() bool { return strings.Count(log.String(), "Starting workers") == 2 })
	if body := f.get(metrics); !strings.Contains(body, "controller_runtime") || strings.Contains(body, "resource_manager_garbage") || strings.Contains(log.String(), "Collected garbage") {
		t.Error("it runs although it is not enabled")
	}
	f.wantLeft("a", "b", "s")
}
