package trouble

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// startManager starts a resource-manager in this process, wired as the program wires it. It runs until the
// returned function is called or the test ends. Unless tuned, it reconciles only on events.
func (w *world) startManager(tune ...func(*inprocess.ResourceManager)) (stop func()) {
	w.Helper()
	r := inprocess.ResourceManager{
		Scheme: w.client.Scheme(), Source: w.controlPlane.Config(), Target: w.controlPlane.Config(),
		Namespaces: []string{w.namespace}, Class: w.namespace, PruneDelay: 100 * time.Millisecond,
	}
	for _, change := range tune {
		change(&r)
	}
	parts, err := r.New(w.Context())
	kit.Must(w, err)
	return kit.Run(w, parts.Manager)
}

// everyFewSeconds makes a resource-manager reconcile all ManagedResources every 5 seconds.
func everyFewSeconds(r *inprocess.ResourceManager) { r.SyncPeriod = 5 * time.Second }

// throughProxy makes a resource-manager access its source, its target or both through a proxy.
func throughProxy(source, target *proxy) func(*inprocess.ResourceManager) {
	return func(r *inprocess.ResourceManager) {
		if source != nil {
			r.Source = source.config()
		}
		if target != nil {
			r.Target = target.config()
		}
	}
}

// noElection configures a resource-manager that runs without leader election.
const noElection = "leaderElection: {leaderElect: false}\n"

// startBinary starts the program. It accesses its source and its target with kubeconfigs.
func (w *world) startBinary(source, target []byte, extra string, tune ...func(*exec.Cmd)) *kit.Process {
	w.Helper()
	return kit.StartManagerWith(w, source, w.binaryConfig(w.file("target", target), extra), tune...)
}

// binaryConfig returns the configuration of a program.
func (w *world) binaryConfig(target, extra string) string {
	return fmt.Sprintf(`apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
sourceClientConnection: {kubeconfig: $KUBECONFIG, namespaces: [%[1]s], qps: -1}
targetClientConnection: {kubeconfig: %[2]s, namespaces: [%[1]s], qps: -1}
server:
  healthProbes: {bindAddress: 127.0.0.1, port: $HEALTH_PORT}
  metrics: {bindAddress: 127.0.0.1, port: $METRICS_PORT}
controllers:
  resourceClass: %[1]s
  managedResource: {managedByLabelValue: %[1]s, syncPeriod: 1h}
%[3]s`, w.namespace, target, extra)
}

// file writes a file and returns its path.
func (w *world) file(name string, content []byte) string {
	w.Helper()
	path := filepath.Join(w.TempDir(), name)
	kit.Must(w, writeFile(path, content))
	return path
}

// kubeconfigOf returns a kubeconfig for the server of a client configuration, with its CA and token.
func (w *world) kubeconfigOf(config *rest.Config) []byte {
	w.Helper()
	content, err := clientcmd.Write(kubeconfig(config))
	kit.Must(w, err)
	return content
}
