// Package controlplanes runs the control planes of Shoots in a cluster with simulated nodes: the programs of their Pods are processes of this
// machine, their etcd is that of the cluster, and a proxy leads to their API servers.
package controlplanes

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/controlplane"
)

// Options configure a Runner.
type Options struct {
	// Cluster is the cluster of the Seed.
	Cluster *controlplane.ControlPlane
	// Program returns the path of a program.
	Program func(name string) string
	// Dir gets the files of the Pods.
	Dir string
	// Domain is the internal domain of the Seed.
	Domain string
}

// Runner runs the control planes.
type Runner struct {
	options Options
	client  client.Client

	mutex     sync.Mutex
	processes map[client.ObjectKey]*process
	// ports are those of the API servers, by namespace.
	ports map[string]int
}

// Start runs the control planes until the context ends. proxy is the address of the proxy to their API servers, such as 127.0.0.1:4711, which
// serves requests with the method CONNECT. ended receives an error if the control planes do not run any longer.
func Start(ctx context.Context, options Options) (proxy string, ended <-chan error, err error) {
	r := &Runner{options: options, processes: map[client.ObjectKey]*process{}, ports: map[string]int{}}
	mgr, err := r.newManager()
	if err != nil {
		return "", nil, fmt.Errorf("run the control planes of Shoots: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("run the control planes of Shoots: %w", err)
	}
	failed := make(chan error, 2)
	for _, run := range []func() error{func() error { return r.serve(ctx, listener) }, func() error { return mgr.Start(ctx) }} {
		go func() {
			if err := run(); err != nil && ctx.Err() == nil {
				failed <- fmt.Errorf("run the control planes of Shoots: %w", err)
			}
		}()
	}
	return listener.Addr().String(), failed, nil
}

func (r *Runner) newManager() (manager.Manager, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	config := r.options.Cluster.Config()
	config.QPS = -1
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		// Secrets are read when a process starts, and then once in a while.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Namespace{}, &corev1.Pod{}}}},
	})
	if err != nil {
		return nil, err
	}
	r.client = mgr.GetClient()
	known := predicate.NewPredicateFuncs(func(object client.Object) bool {
		_, runs := programs[object.GetName()]
		return runs && strings.HasPrefix(object.GetNamespace(), constants.PrefixTechnicalID)
	})
	if err := builder.ControllerManagedBy(mgr).For(&appsv1.Deployment{}, builder.WithPredicates(known)).
		WithOptions(controller.Options{MaxConcurrentReconciles: len(programs)}).Complete(r); err != nil {
		return nil, err
	}
	return mgr, builder.ControllerManagedBy(mgr).For(newEtcd()).Complete(&etcds{client: mgr.GetClient()})
}

// Intervals.
const (
	// filesInterval is how often the files of running processes are written, as by a kubelet.
	filesInterval = 30 * time.Second
	// missingInterval is how long objects that files need may be missing until they are looked for again.
	missingInterval = 300 * time.Millisecond
	// probeInterval is how often an API server is asked whether it is ready.
	probeInterval = 300 * time.Millisecond
	// restartInterval is how long a program that ends at once is not started again, as by a kubelet.
	restartInterval = 5 * time.Second
	stopGrace       = 10 * time.Second
)
