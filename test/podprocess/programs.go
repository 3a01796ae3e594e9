package podprocess

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// loopback is the address of all servers.
const loopback = "127.0.0.1"

// With returns arguments with the given flags replaced. Flags with an empty value are removed.
func With(args []string, values map[string]string) []string {
	result := slices.DeleteFunc(slices.Clone(args), func(argument string) bool {
		flag, _, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		_, replaced := values[flag]
		return replaced
	})
	for flag, value := range values {
		if value != "" {
			result = append(result, "--"+flag+"="+value)
		}
	}
	return result
}

// APIServer returns the arguments of a kube-apiserver that serves at a port, with the objects below a prefix of an etcd without TLS.
func (p *Pod) APIServer(port int, etcd *url.URL, prefix string) []string {
	return With(p.Args, map[string]string{
		"secure-port": strconv.Itoa(port), "bind-address": loopback, "advertise-address": "192.0.2.1", "endpoint-reconciler-type": "none",
		"shutdown-delay-duration": "1s", // what connects to it stops using it before it ends
		"etcd-servers":            etcd.String(), "etcd-prefix": prefix, "etcd-servers-overrides": "", "etcd-cafile": "", "etcd-certfile": "", "etcd-keyfile": "",
	})
}

// Controllers returns the arguments of a kube-controller-manager that serves at a port.
func (p *Pod) Controllers(port int) []string {
	return With(p.Args, map[string]string{"secure-port": strconv.Itoa(port), "bind-address": loopback})
}

// Connection is where a resource-manager runs. The ports may be placeholders.
type Connection struct {
	// Kubeconfig is the path of the kubeconfig of the source cluster.
	Kubeconfig                string
	Health, Metrics, Webhooks any
}

// ResourceManager returns the configuration of a resource-manager without leader election, from the file that its first argument names.
func (p *Pod) ResourceManager(text []byte, c Connection) ([]byte, error) {
	config := map[string]any{}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("decode the configuration of the resource-manager: %w", err)
	}
	if err := unstructured.SetNestedField(config, c.Kubeconfig, "sourceClientConnection", "kubeconfig"); err != nil {
		return nil, fmt.Errorf("change the configuration of the resource-manager: %w", err)
	}
	config["leaderElection"] = map[string]any{"leaderElect": false}
	local := func(port any) map[string]any { return map[string]any{"bindAddress": loopback, "port": port} }
	webhooks := local(c.Webhooks)
	if slices.ContainsFunc(p.Volumes, func(volume corev1.Volume) bool { return volume.Name == "certificate" }) {
		webhooks["tls"] = map[string]any{"serverCertDir": filepath.Join(p.Directory, "certificate")}
	}
	config["server"] = map[string]any{"healthProbes": local(c.Health), "metrics": local(c.Metrics), "webhooks": webhooks}
	return yaml.Marshal(config)
}

// File returns the path in the first argument, which has the form --flag=path.
func (p *Pod) File() string {
	_, file, _ := strings.Cut(p.Args[0], "=")
	return file
}

// Flag returns the value of a flag.
func (p *Pod) Flag(name string) (value string, found bool) {
	for _, argument := range p.Args {
		if value, found = strings.CutPrefix(argument, "--"+name+"="); found {
			return value, true
		}
	}
	return "", false
}
