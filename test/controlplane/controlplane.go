package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	startTimeout   = 3 * time.Minute
	programTimeout = time.Minute
	// stopGrace is the grace period of processes that were started with StartProcess.
	stopGrace = 10 * time.Second
)

// Options define the components of a control plane in addition to etcd and kube-apiserver.
type Options struct {
	// ControllerManager runs kube-controller-manager: service accounts, garbage collection, namespace deletion, workloads.
	// kube-apiserver then admits service accounts into Pods, as usual.
	ControllerManager bool
	// Scheduler runs kube-scheduler.
	Scheduler bool
	// Nodes is the number of simulated nodes (node-0, node-1, …). Pods bound to them become Ready, and Pods of Jobs succeed.
	// Scheduling requires Scheduler and ControllerManager, because new nodes are tainted until kube-controller-manager
	// observes that they are Ready.
	Nodes int
	// AvailableAtOnce backdates the readiness of simulated Pods, so that minReadySeconds does not delay a rollout.
	AvailableAtOnce bool
	// HeldPods is an expression of jq. Pods for which it has a result do not become Ready.
	HeldPods string

	// Dir contains data, certificates, logs and the kubeconfig. Stop does not remove it. It cannot be used twice. The
	// default is a temporary directory, which Stop removes.
	Dir string
	// APIServerArgs are additional flags of kube-apiserver, without dashes. They replace default values. Nil removes a flag.
	APIServerArgs map[string][]string
	// EtcdArgs are additional flags of etcd, like APIServerArgs.
	EtcdArgs map[string][]string
	// ControllerManagerArgs are additional arguments of kube-controller-manager, with dashes. They come last and therefore
	// override the previous ones.
	ControllerManagerArgs []string
	// AuditLog is a file to which kube-apiserver logs one JSON line for each request, and two for watches and other long
	// requests (stages ResponseStarted and ResponseComplete with the same auditID).
	AuditLog string

	// Log receives progress messages. By default, they are discarded.
	Log io.Writer
}

// ControlPlane is a running control plane. Its methods may be called concurrently.
type ControlPlane struct {
	options     Options
	dir         string
	binaries    *binaries
	watchdog    *watchdog
	environment *envtest.Environment
	config      *rest.Config
	kubeconfig  []byte

	mutex     sync.Mutex
	processes []*Process
	stop      func() error
}

// Start starts a control plane and waits until it is usable. The context limits only the start. The control plane runs
// until Stop is called or this process ends.
func Start(ctx context.Context, options Options) (_ *ControlPlane, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	cp, err := prepare(options)
	if err != nil {
		return nil, fmt.Errorf("starting a control plane: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("starting a control plane: %w", errors.Join(err, cp.Stop()))
		}
	}()

	if err := cp.step(ctx, "etcd and kube-apiserver", cp.startAPIServer); err != nil {
		return nil, err
	}
	if err := cp.startComponents(); err != nil {
		return nil, err
	}
	if options.ControllerManager {
		if err := cp.step(ctx, "kube-controller-manager", cp.awaitControllerManager); err != nil {
			return nil, err
		}
	}
	if options.Nodes > 0 {
		if err := cp.step(ctx, fmt.Sprintf("%d simulated node(s)", options.Nodes), cp.createNodes); err != nil {
			return nil, err
		}
	}
	return cp, nil
}

// prepare finds the programs, creates the directory and starts the watchdog.
func prepare(options Options) (*ControlPlane, error) {
	if options.Log == nil {
		options.Log = io.Discard
	}
	programs, err := newBinaries()
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{options: options, binaries: programs}
	cp.stop = sync.OnceValue(cp.stopAll)

	if cp.dir, err = makeDir(options.Dir); err != nil {
		return nil, fmt.Errorf("creating its directory: %w", err)
	}
	if cp.watchdog, err = startWatchdog(cp.dir, options.Dir == ""); err != nil {
		return nil, err
	}
	return cp, nil
}

func makeDir(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "trellis-controlplane-")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "etcd")); err == nil {
		return "", fmt.Errorf("%s already holds the data of a control plane, remove it first", dir)
	}
	return dir, nil
}

// step runs a step of the start and logs its duration.
func (cp *ControlPlane) step(ctx context.Context, name string, run func(context.Context) error) error {
	start := time.Now()
	if err := run(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := fmt.Fprintf(cp.options.Log, "%s ready (%.1fs)\n", name, time.Since(start).Seconds()); err != nil {
		return fmt.Errorf("reporting progress: %w", err)
	}
	return nil
}

// Config returns a copy of an administrator's client configuration, without client-side throttling.
func (cp *ControlPlane) Config() *rest.Config { return rest.CopyConfig(cp.config) }

// Kubeconfig returns the content of a kubeconfig with the same access. The file is also at [ControlPlane.Dir]/kubeconfig.
func (cp *ControlPlane) Kubeconfig() []byte { return slices.Clone(cp.kubeconfig) }

// Dir returns the directory of data, certificates, logs and the kubeconfig.
func (cp *ControlPlane) Dir() string { return cp.dir }

// Stop stops everything and removes the temporary directory. Further calls do nothing.
func (cp *ControlPlane) Stop() error { return cp.stop() }

func (cp *ControlPlane) stopAll() error {
	cp.mutex.Lock()
	processes := slices.Clone(cp.processes)
	cp.mutex.Unlock()

	var errs []error
	for _, process := range slices.Backward(processes) {
		if process.component {
			// It has no state to save, but the caller should learn if it ended early.
			errs = append(errs, process.Err(), process.Stop(0))
			continue
		}
		errs = append(errs, process.Stop(stopGrace))
	}
	if cp.environment != nil {
		errs = append(errs, cp.environment.Stop())
	}
	errs = append(errs, cp.watchdog.release())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return nil
}
