package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// startAPIServer starts etcd and kube-apiserver, and provisions the administrator. Envtest gives etcd
// --unsafe-no-fsync.
func (cp *ControlPlane) startAPIServer(ctx context.Context) error {
	environment := &envtest.Environment{
		ControlPlaneStartTimeout: remaining(ctx, programTimeout),
		ControlPlaneStopTimeout:  programTimeout,
	}
	etcdLog, err := cp.configureEtcd(environment)
	if err != nil {
		return err
	}
	defer etcdLog.Close() //nolint:errcheck // etcd has its own descriptor
	serverLog, err := cp.configureAPIServer(environment)
	if err != nil {
		return err
	}
	defer serverLog.Close() //nolint:errcheck // kube-apiserver has its own descriptor

	cp.environment = environment
	var config *rest.Config
	err = startInherits(collectLess("kube-apiserver"), func() (err error) {
		config, err = environment.Start()
		return err
	})
	if err != nil {
		return fmt.Errorf("%w\nthe end of the log of etcd:\n%s\nthe end of the log of kube-apiserver:\n%s",
			err, tail(cp.path("etcd.log")), tail(cp.path("kube-apiserver.log")))
	}
	// Certificates for webhooks, in a temporary directory that the watchdog does not know. They are not used.
	if err := environment.WebhookInstallOptions.Cleanup(); err != nil {
		return fmt.Errorf("removing the unused certificates: %w", err)
	}
	if ctx.Err() != nil { // envtest knows no contexts
		return context.Cause(ctx)
	}

	config.QPS, config.Burst = -1, 0
	cp.config, cp.kubeconfig = config, environment.KubeConfig
	for name, content := range map[string][]byte{"kubeconfig": cp.kubeconfig, "certs/ca.crt": config.CAData} {
		if err := os.WriteFile(cp.path(name), content, 0o600); err != nil {
			return fmt.Errorf("writing its certificates: %w", err)
		}
	}
	return nil
}

func (cp *ControlPlane) configureEtcd(environment *envtest.Environment) (*os.File, error) {
	clients, err := freeURL()
	if err != nil {
		return nil, err
	}
	peers, err := freeURL()
	if err != nil {
		return nil, err
	}
	dataDir := cp.path("etcd") // the watchdog identifies etcd by it
	path, log, err := cp.prepareProgram("etcd", dataDir)
	if err != nil {
		return nil, err
	}
	etcd := &envtest.Etcd{Path: path, DataDir: dataDir, Out: log, Err: log, URL: clients}
	etcd.Configure().Set("listen-peer-urls", peers.String())
	for name, values := range cp.options.EtcdArgs {
		etcd.Configure().Set(name, slices.Clone(values)...)
	}
	environment.ControlPlane.Etcd = etcd
	return log, nil
}

func (cp *ControlPlane) configureAPIServer(environment *envtest.Environment) (*os.File, error) {
	flags := environment.ControlPlane.GetAPIServer().Configure()
	// This address (RFC 5737) is never dialed, but the flag is required. Its default is the address of the machine's default
	// route, which might not exist, and loopback is not a valid endpoint.
	flags.Set("advertise-address", "192.0.2.1")
	if cp.options.ControllerManager {
		// Envtest disables the admission of service accounts, which are not created without kube-controller-manager.
		flags.Disable("disable-admission-plugins")
	}
	if cp.options.AuditLog != "" {
		auditLog, err := filepath.Abs(cp.options.AuditLog)
		if err != nil {
			return nil, fmt.Errorf("finding the audit log: %w", err)
		}
		policy := cp.path("audit-policy.yaml")
		if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
			return nil, fmt.Errorf("writing the audit policy: %w", err)
		}
		// A size of 0 disables the rotation, so that all requests are in one file.
		flags.Set("audit-policy-file", policy).Set("audit-log-path", auditLog).Set("audit-log-maxsize", "0")
	}
	for name, values := range cp.options.APIServerArgs {
		flags.Set(name, slices.Clone(values)...)
	}

	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	certDir := cp.path("certs") // the watchdog identifies kube-apiserver by it
	path, log, err := cp.prepareProgram("kube-apiserver", certDir)
	if err != nil {
		return nil, err
	}
	server := environment.ControlPlane.GetAPIServer()
	server.Address, server.Port = "127.0.0.1", strconv.Itoa(port)
	server.Path, server.CertDir, server.Out, server.Err = path, certDir, log, log
	return log, nil
}

// prepareProgram finds a program, creates its directory and opens its log.
func (cp *ControlPlane) prepareProgram(name, dir string) (path string, log *os.File, err error) {
	if path, err = cp.binaries.find(name); err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("creating the directory of %s: %w", name, err)
	}
	if log, err = os.Create(cp.path(name + ".log")); err != nil {
		return "", nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	return path, log, nil
}

func (cp *ControlPlane) path(name string) string { return filepath.Join(cp.dir, name) }

// remaining returns the time until the deadline of the context, limited to most.
func remaining(ctx context.Context, most time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(min(time.Until(deadline), most), time.Millisecond)
	}
	return most
}
