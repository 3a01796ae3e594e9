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
	// stopGrace is what processes get that others started with StartProcess.
	stopGrace = 10 * time.Second
)

// Options say what a control plane consists of, beside etcd and kube-apiserver.
type Options struct {
	// ControllerManager runs kube-controller-manager: service accounts, garbage collection, namespace
	// deletion, workloads. With it, kube-apiserver admits service accounts into pods, as it usually does.
	ControllerManager bool
	// Scheduler runs kube-scheduler.
	Scheduler bool
	// Nodes is the number of simulated nodes (node-0, node-1, …). Pods bound to them become Ready, pods
	// of Jobs succeed. Pods get there with Scheduler and, as new nodes are tainted until
	// kube-controller-manager has seen them Ready, ControllerManager.
	Nodes int
	// AvailableAtOnce dates the readiness of simulated Pods back, so that no minReadySeconds delays a roll-out.
	AvailableAtOnce bool

	// Dir keeps data, certificates, logs and the kubeconfig, and is left behind by Stop. It cannot be
	// used twice. By default a temporary directory is used and removed.
	Dir string
	// APIServerArgs are further flags of kube-apiserver, without dashes. They replace default values; nil leaves a flag out.
	APIServerArgs map[string][]string
	// EtcdArgs are further flags of etcd, like APIServerArgs.
	EtcdArgs map[string][]string
	// ControllerManagerArgs are further arguments of kube-controller-manager, with dashes. They come last, and so
	// replace the ones before.
	ControllerManagerArgs []string
	// AuditLog is a file that kube-apiserver logs one line (JSON) into for every request, two for
	// watches and other long ones (stages ResponseStarted and ResponseComplete, same auditID).
	AuditLog string

	// Log is told about progress, by default nobody is.
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

// Start starts a control plane and waits until it can be used. The context bounds the start only: the
// control plane runs until Stop is called or this process ends.
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

// prepare finds the programs, makes the directory and sets the watchdog over it.
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
		return nil, fmt.Errorf("making its directory: %w", err)
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

// step runs one step of the start and reports how long it took.
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

// Kubeconfig returns the same access as a file's content. The file is also at [ControlPlane.Dir]/kubeconfig.
func (cp *ControlPlane) Kubeconfig() []byte { return slices.Clone(cp.kubeconfig) }

// Dir is where data, certificates, logs and the kubeconfig are.
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
			// It has no state to save, but whoever used the control plane should know if it had ended.
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
