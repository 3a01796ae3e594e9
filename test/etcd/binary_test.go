package etcd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	etcdoperator "github.com/trellis-k8s/trellis/cmd/etcd-operator/app"
	"github.com/trellis-k8s/trellis/pkg/etcd"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestBinary starts the program. It elects a leader, serves its health and its metrics, and reconciles. It rejects a wrong
// configuration.
func TestBinary(t *testing.T) {
	w := newWorld(t)
	program, err := controlplane.BuildProgram[etcdoperator.Program]()
	kit.Must(t, err)
	kubeconfig, file := filepath.Join(t.TempDir(), "kubeconfig"), filepath.Join(t.TempDir(), "config.yaml")
	kit.Must(t, os.WriteFile(kubeconfig, w.cp.Kubeconfig(), 0o600))
	health, metrics := kit.FreePort(t), kit.FreePort(t)
	config := fmt.Sprintf(`apiVersion: etcdoperator.config.gardener.cloud/v1alpha1
kind: EtcdOperatorConfiguration
memberImage: registry.example.org/etcd-member:v1
clientConnection: {kubeconfig: %s}
leaderElection: {resourceNamespace: %s}
server: {healthProbes: {bindAddress: 127.0.0.1, port: %d}, metrics: {bindAddress: 127.0.0.1, port: %d}}
`, kubeconfig, w.namespace, health, metrics)
	kit.Must(t, os.WriteFile(file, []byte(config+"unknown: 1\n"), 0o600))
	if output, err := exec.CommandContext(t.Context(), program, "--config", file).CombinedOutput(); err == nil || !strings.Contains(string(output), "unknown") {
		t.Errorf("a wrong configuration: %v, %s", err, output)
	}
	kit.Must(t, os.WriteFile(file, []byte(config), 0o600))
	command, log := exec.CommandContext(t.Context(), program, "--config", file), &kit.Output{}
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	kit.Must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Wait()
		if t.Failed() {
			t.Logf("log of the operator:\n%s", log)
		}
	})
	kit.EventuallyTrue(t, "the operator is ready", func() bool {
		status, _ := get(t.Context(), health, "/readyz")
		return status == http.StatusOK
	})
	if status, _ := get(t.Context(), health, "/healthz"); status != http.StatusOK {
		t.Errorf("/healthz responds %d", status)
	}
	w.declare(withTLS)
	kit.EventuallyTrue(t, "the Etcd is reconciled", func() bool {
		return sets.New(w.etcd().Finalizers...).Has(etcd.Finalizer) && w.etcd().Status.ObservedGeneration != nil
	})
	if _, body := get(t.Context(), metrics, "/metrics"); !strings.Contains(body, `controller_runtime_reconcile_total{controller="etcd"`) {
		t.Error("the metrics of the controller are missing")
	}
}

// get sends a request to a server on this machine. The status is 0 if the server does not respond.
func get(ctx context.Context, port int, path string) (status int, body string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	content, _ := io.ReadAll(io.LimitReader(response.Body, 1<<22)) // the caller detects an incomplete response
	return response.StatusCode, string(content)
}
