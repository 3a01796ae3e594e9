// Package garden starts a garden on this machine: a control plane with the garden's API server behind its aggregator.
package garden

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

const (
	serviceName      = "gardener-apiserver"
	serviceNamespace = "kube-system"
	defaultIdentity  = "test-garden"

	pollInterval = 50 * time.Millisecond
	readyTimeout = time.Minute
	// shutdownGrace is longer than the time for which the API server waits for requests.
	shutdownGrace = 90 * time.Second
)

// Options configure a garden.
type Options struct {
	// ControlPlane configures the control plane of the garden. Start adds flags for the aggregator.
	ControlPlane controlplane.Options
	// APIServer is the path of the API server's program.
	APIServer string
	// APIServerArgs are additional arguments of the API server, including the dashes.
	APIServerArgs []string
	// ShootRules switches on the admission plugins that check Shoots against the objects that they refer to. Without it, Shoots need
	// no CloudProfile, Project or Seed.
	ShootRules bool
	// References switches on the admission plugins that check what objects refer to, and fill fields from it. Without it, objects may
	// refer to what does not exist.
	References bool
	// EtcdServer returns the URL under which the API server reaches etcd, for example that of a proxy. Its argument is the URL
	// of etcd, which is also the default.
	EtcdServer func(*url.URL) string
	// Identity is the identity of the garden. It defaults to test-garden.
	Identity string
	// Dir contains the certificates and the kubeconfig of the API server. It defaults to a temporary directory. Stop removes
	// it.
	Dir string
}

// Garden is a running garden.
type Garden struct {
	*controlplane.ControlPlane

	options    Options
	dir        string
	authority  []byte
	kubeconfig string
	port       int
	process    *controlplane.Process
}

// Start starts a garden and waits until all its APIs are served. The context applies only to the start.
func Start(ctx context.Context, options Options) (_ *Garden, err error) {
	if options.Identity == "" {
		options.Identity = defaultIdentity
	}
	if options.EtcdServer == nil {
		options.EtcdServer = (*url.URL).String
	}
	dir, err := makeDir(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("start a garden: %w", err)
	}
	g := &Garden{options: options, dir: dir}
	defer func() {
		if err != nil {
			err = fmt.Errorf("start a garden: %w", errors.Join(err, g.Stop()))
		}
	}()
	authority, err := writeCertificates(dir)
	if err != nil {
		return nil, err
	}
	if g.ControlPlane, err = controlplane.Start(ctx, withAggregator(options.ControlPlane, dir)); err != nil {
		return nil, err
	}
	g.authority = authority
	if g.kubeconfig, err = g.writeKubeconfig(); err != nil {
		return nil, err
	}
	if err := g.applyChart(ctx, isRight); err != nil {
		return nil, err
	}
	if err := g.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

func makeDir(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "trellis-garden-")
	}
	return dir, os.MkdirAll(dir, 0o700)
}

// withAggregator adds the flags with which kube-apiserver authenticates itself and its clients to other API servers.
func withAggregator(options controlplane.Options, dir string) controlplane.Options {
	args := map[string][]string{
		"requestheader-client-ca-file":       {filepath.Join(dir, "proxy-ca.crt")},
		"requestheader-allowed-names":        {proxyName},
		"requestheader-username-headers":     {"X-Remote-User"},
		"requestheader-group-headers":        {"X-Remote-Group"},
		"requestheader-extra-headers-prefix": {"X-Remote-Extra-"},
		"proxy-client-cert-file":             {filepath.Join(dir, "proxy.crt")},
		"proxy-client-key-file":              {filepath.Join(dir, "proxy.key")},
	}
	for flag, values := range options.APIServerArgs {
		args[flag] = values
	}
	options.APIServerArgs = args
	return options
}

// StartAPIServer starts the API server, or restarts it after it was killed, and waits until the aggregator serves all its
// groups.
//
// The aggregator gets the address only when the API server is ready, as in a cluster, where a Service has only ready Pods.
// An earlier connection could be anonymous as long as it lasts, because the server requests only client certificates of the
// authorities that it has already read.
func (g *Garden) StartAPIServer(ctx context.Context) (err error) {
	start := time.Now()
	if g.port, err = controlplane.FreePort(); err != nil {
		return err
	}
	if g.process, err = g.startProcess("gardener-apiserver", g.port); err != nil {
		return err
	}
	if err := g.awaitReady(ctx); err != nil {
		return err
	}
	if err := g.applyChart(ctx, isAPIService); err != nil {
		return err
	}
	if err := g.awaitGroups(ctx); err != nil {
		return err
	}
	if log := g.options.ControlPlane.Log; log != nil {
		if _, err := fmt.Fprintf(log, "the garden's API server ready (%.1fs)\n", time.Since(start).Seconds()); err != nil {
			return fmt.Errorf("report progress: %w", err)
		}
	}
	return nil
}

// StartReplica starts another API server with the same etcd, waits until it is ready, and returns a client configuration that connects to
// it. The aggregator does not know it. It runs until the garden stops.
func (g *Garden) StartReplica(ctx context.Context) (*rest.Config, error) {
	port, err := controlplane.FreePort()
	if err != nil {
		return nil, err
	}
	if _, err := g.startProcess("gardener-apiserver-replica", port); err != nil {
		return nil, err
	}
	config := g.direct(port)
	return config, g.await(ctx, "the second API server", func(ctx context.Context) error { return checkReady(ctx, config) })
}

// disabledPlugins returns the admission plugins that most tests do without.
func (o *Options) disabledPlugins() []string {
	var disabled []string
	if !o.ShootRules {
		disabled = append(disabled, "ShootMutator", "ShootValidator")
	}
	if !o.References {
		disabled = append(disabled, "ResourceReferenceManager", "ExtensionValidator", "ExtensionLabels", "ShootDNS", "ShootQuotaValidator",
			"FinalizerRemoval", "ShootResourceReservation", "ManagedSeed", "Bastion")
	}
	return disabled
}

func (g *Garden) startProcess(name string, port int) (*controlplane.Process, error) {
	args := []string{
		"--cluster-identity=" + g.options.Identity,
		"--etcd-servers=" + g.options.EtcdServer(g.EtcdURL()),
		"--kubeconfig=" + g.kubeconfig, "--authentication-kubeconfig=" + g.kubeconfig, "--authorization-kubeconfig=" + g.kubeconfig,
		"--authorization-always-allow-paths=/healthz,/livez,/readyz",
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + filepath.Join(g.dir, "server.crt"), "--tls-private-key-file=" + filepath.Join(g.dir, "server.key"),
		"--workload-identity-token-issuer=" + Issuer, "--workload-identity-signing-key-file=" + filepath.Join(g.dir, "issuer.key"),
	}
	if disabled := g.options.disabledPlugins(); len(disabled) > 0 {
		args = append(args, "--disable-admission-plugins="+strings.Join(disabled, ","))
	}
	return g.StartProcess(name, g.options.APIServer, append(args, g.options.APIServerArgs...)...)
}

// KillAPIServer stops the API server immediately, as if its machine had failed.
func (g *Garden) KillAPIServer() error { return g.process.Stop(0) }

// StopAPIServer stops the API server gracefully, and kills it after the grace period.
func (g *Garden) StopAPIServer(grace time.Duration) error { return g.process.Stop(grace) }

// PID returns the process ID of the API server.
func (g *Garden) PID() int { return g.process.PID() }

// awaitReady waits until the API server is ready.
func (g *Garden) awaitReady(ctx context.Context) error {
	return g.await(ctx, "the API server", g.checkReady)
}

// Ready reports whether the API server is ready to serve.
func (g *Garden) Ready(ctx context.Context) bool { return g.checkReady(ctx) == nil }

// checkReady returns why the API server is not ready.
func (g *Garden) checkReady(ctx context.Context) error { return checkReady(ctx, g.Direct()) }

// checkReady sends no credentials for the reason in StartAPIServer.
func checkReady(ctx context.Context, server *rest.Config) error {
	direct, err := discovery.NewDiscoveryClientForConfig(rest.AnonymousClientConfig(server))
	if err != nil {
		return err
	}
	return direct.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// awaitGroups waits until the aggregator serves all groups of the API server, also in its aggregated discovery, which it
// updates later and from which clients read the groups.
func (g *Garden) awaitGroups(ctx context.Context) error {
	aggregated, err := discovery.NewDiscoveryClientForConfig(g.Config())
	if err != nil {
		return err
	}
	return g.await(ctx, "the aggregator", func(context.Context) error {
		_, discovered, failed, err := aggregated.GroupsAndMaybeResources()
		if err != nil {
			return err
		}
		for _, version := range versions() {
			if _, err := aggregated.ServerResourcesForGroupVersion(version.String()); err != nil {
				return err
			}
			if discovered[version] == nil {
				return errors.Join(fmt.Errorf("the aggregated discovery has no %s", version), failed[version])
			}
		}
		return nil
	})
}

// await waits until the condition returns no error. It fails early if the API server exits.
func (g *Garden) await(ctx context.Context, what string, condition func(context.Context) error) error {
	var objection error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if err := g.process.Err(); err != nil {
			return false, err
		}
		objection = condition(ctx)
		return objection == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, errors.Join(err, objection))
	}
	return nil
}

// Direct returns a client configuration that connects to the API server directly, without the aggregator.
func (g *Garden) Direct() *rest.Config { return g.direct(g.port) }

func (g *Garden) direct(port int) *rest.Config {
	config := g.Config()
	config.Host = "https://127.0.0.1:" + strconv.Itoa(port)
	config.CAData, config.CAFile = nil, filepath.Join(g.dir, "server-ca.crt")
	config.ServerName = serverName
	return config
}

// Stop stops the garden.
func (g *Garden) Stop() error {
	var errs []error
	if g.process != nil {
		grace := time.Duration(0)
		if controlplane.Covered() { // it writes its coverage only on a graceful stop
			grace = shutdownGrace
		}
		errs = append(errs, g.process.Stop(grace))
	}
	if g.ControlPlane != nil {
		errs = append(errs, g.ControlPlane.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(g.dir))...)
}
