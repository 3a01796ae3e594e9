package trouble

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/health"
	healthcontroller "github.com/trellis-k8s/trellis/pkg/health/controller"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
	"github.com/trellis-k8s/trellis/pkg/target"
	"github.com/trellis-k8s/trellis/test/kit"
)

// settings are what a resource-manager in this process has different from one of its own.
type settings struct {
	// source and target lead to the clusters; by default both do to the API server.
	source, target *rest.Config
	clock          clock.WithTicker
	syncPeriod     time.Duration
	pruneDelay     time.Duration
}

// startManager starts a resource-manager in this process, wired as the program wires it, until the function that it returns is called
// or the test ends. Nothing is looked at without an event, unless it is tuned.
func (w *world) startManager(tune ...func(*settings)) (stop func()) {
	w.Helper()
	s := settings{clock: clock.RealClock{}, syncPeriod: time.Hour, pruneDelay: 100 * time.Millisecond}
	for _, change := range tune {
		change(&s)
	}
	for _, config := range []**rest.Config{&s.source, &s.target} {
		if *config == nil {
			*config = w.controlPlane.Config()
		}
	}
	inNamespace := map[string]cache.Config{w.namespace: {}}
	options := kit.ManagerOptions(w.client.Scheme())
	options.Cache = cache.Options{
		DefaultNamespaces: inNamespace,
		DefaultTransform:  cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&resourcesv1alpha1.ManagedResource{}: {Transform: managedresource.NewCompactor().Compact},
		},
	}
	mgr, err := manager.New(s.source, options)
	kit.Must(w, err)
	kit.Must(w, w.addControllers(w.Context(), mgr, s))
	return kit.Run(w, mgr)
}

func (w *world) addControllers(ctx context.Context, mgr manager.Manager, s settings) error {
	targetCluster, err := cluster.New(s.target, func(options *cluster.Options) {
		options.Scheme, options.Cache.DefaultNamespaces = mgr.GetScheme(), map[string]cache.Config{w.namespace: {}}
	})
	if err != nil {
		return err
	}
	objects, err := target.NewObjects(s.target, targetCluster.GetHTTPClient())
	if err != nil {
		return err
	}
	examiner := health.NewExaminer(health.OtherKindsFailuresOnly, nil)
	view := live.NewView(live.Options{
		Objects: objects, Policy: fieldowner.DefaultPolicy(), Examiner: examiner, ManagedBy: w.namespace, Clock: s.clock,
	})
	applier := managedresource.NewReconciler(managedresource.Reconciler{
		Source: mgr.GetClient(), Direct: mgr.GetAPIReader(), Autoscalers: targetCluster.GetCache(), Objects: objects, Live: view,
		Engine:   apply.NewEngine(objects, fieldowner.DefaultPolicy(), s.clock),
		Recorder: mgr.GetEventRecorder("resource-manager"), Clock: s.clock,
		Options: managedresource.Options{
			Class: w.namespace, Namespaces: []string{w.namespace}, ClusterID: w.namespace, ManagedBy: w.namespace,
			SyncPeriod: s.syncPeriod, PruneDelay: s.pruneDelay, ConcurrentSyncs: 5, Limits: managedresource.DefaultLimits(),
		},
	})
	examining := healthcontroller.NewReconciler(healthcontroller.Reconciler{
		Source: mgr.GetClient(), Live: view, Examiner: examiner, Objects: objects,
		Recorder: mgr.GetEventRecorder("resource-manager"), Clock: s.clock,
		Options: healthcontroller.Options{Class: w.namespace, ClusterID: w.namespace, SyncPeriod: s.syncPeriod, ConcurrentSyncs: 5},
	})
	return errors.Join(mgr.Add(targetCluster), applier.AddToManager(ctx, mgr, targetCluster.GetCache()), examining.AddToManager(mgr))
}

// everyFewSeconds has all ManagedResources looked at without an event.
func everyFewSeconds(s *settings) { s.syncPeriod = 5 * time.Second }

// throughProxy has a resource-manager reach its source, its target or both by way of a proxy.
func throughProxy(source, target *proxy) func(*settings) {
	return func(s *settings) {
		if source != nil {
			s.source = source.config()
		}
		if target != nil {
			s.target = target.config()
		}
	}
}

// noElection is for a resource-manager that leads without an election.
const noElection = "leaderElection: {leaderElect: false}\n"

// startBinary starts the program. It reaches its source and its target by kubeconfigs.
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

// kubeconfigOf returns a kubeconfig that leads where a client configuration does, with its CA and token.
func (w *world) kubeconfigOf(config *rest.Config) []byte {
	w.Helper()
	content, err := clientcmd.Write(kubeconfig(config))
	kit.Must(w, err)
	return content
}
