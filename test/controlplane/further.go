package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// EtcdURL returns the URL at which etcd serves clients over HTTP.
func (cp *ControlPlane) EtcdURL() *url.URL {
	address := *cp.environment.ControlPlane.Etcd.URL
	return &address
}

// APIServer is an additional kube-apiserver of a control plane.
type APIServer struct {
	cp      *ControlPlane
	process *Process
	name    string
	path    string
	args    []string
	port    int
}

// StartAPIServer starts an additional kube-apiserver, which shares data and users with the first one and ends with the
// control plane. It connects to etcd at a URL, which may be the URL of a proxy in front of [ControlPlane.EtcdURL]. args
// are additional flags, as in [Options]. It returns when the server is ready.
func (cp *ControlPlane) StartAPIServer(ctx context.Context, name string, etcd *url.URL, args map[string][]string) (*APIServer, error) {
	path, err := cp.binaries.find("kube-apiserver")
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	flags := cp.furtherFlags(name, etcd, port)
	maps.Copy(flags, args)
	server := &APIServer{cp: cp, name: name, path: path, port: port}
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		for _, value := range flags[flag] {
			server.args = append(server.args, "--"+flag+"="+value)
		}
	}
	if err := server.Restart(ctx); err != nil {
		return nil, err
	}
	return server, nil
}

// furtherFlags returns the flags that envtest set for the first kube-apiserver and an additional one shares, and its own
// flags.
func (cp *ControlPlane) furtherFlags(name string, etcd *url.URL, port int) map[string][]string {
	serving := &cp.environment.ControlPlane.GetAPIServer().SecureServing
	flags := map[string][]string{
		"etcd-servers":                     {etcd.String()},
		"secure-port":                      {strconv.Itoa(port)},
		"bind-address":                     {serving.Address},
		"advertise-address":                {"192.0.2.1"}, // see configureAPIServer
		"endpoint-reconciler-type":         {"none"},      // the address belongs to the first one
		"cert-dir":                         {cp.path(name + "-certs")},
		"tls-cert-file":                    {cp.path("certs/apiserver.crt")},
		"tls-private-key-file":             {cp.path("certs/apiserver.key")},
		"client-ca-file":                   {cp.path("certs/client-cert-auth-ca.crt")},
		"service-account-issuer":           {serving.URL("https", "/").String()},
		"service-account-key-file":         {cp.path("certs/sa-signer.crt")},
		"service-account-signing-key-file": {cp.path("certs/sa-signer.key")},
		"service-cluster-ip-range":         {"10.0.0.0/24"},
		"authorization-mode":               {"RBAC"},
		"allow-privileged":                 {"true"},
	}
	if !cp.options.ControllerManager {
		flags["disable-admission-plugins"] = []string{"ServiceAccount"}
	}
	return flags
}

// Restart starts the server at its address, also after it was killed, and waits until it is ready.
func (s *APIServer) Restart(ctx context.Context) error {
	var err error
	if s.process, err = s.cp.start(&Process{name: s.name, component: true}, s.path, s.args); err != nil {
		return err
	}
	probe, err := discovery.NewDiscoveryClientForConfig(s.Config())
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", s.name, err)
	}
	var objection error
	err = wait.PollUntilContextTimeout(ctx, pollInterval, programTimeout, true, func(ctx context.Context) (bool, error) {
		if err := s.process.Err(); err != nil {
			return false, err
		}
		objection = probe.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		return objection == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", s.name, errors.Join(err, objection))
	}
	return nil
}

// Kill kills the server immediately, as if its machine had failed.
func (s *APIServer) Kill() error {
	s.cp.mutex.Lock()
	s.cp.processes = slices.DeleteFunc(s.cp.processes, func(p *Process) bool { return p == s.process })
	s.cp.mutex.Unlock()
	return s.process.Stop(0)
}

// Config returns a client configuration for this server, like [ControlPlane.Config].
func (s *APIServer) Config() *rest.Config {
	config := s.cp.Config()
	config.Host = net.JoinHostPort(s.cp.environment.ControlPlane.GetAPIServer().Address, strconv.Itoa(s.port))
	return config
}
