package landscape

import (
	"bytes"
	"embed"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"text/template"

	"github.com/trellis-k8s/trellis/test/landscape/machine"
)

//go:embed config
var configFiles embed.FS

const (
	pki         = machine.State + "/pki/"
	kubeconfigs = machine.State + "/kubeconfigs/"
	apiPort     = 6443
	// Paths of the CNI plugins, their configuration, and the configuration that maps images to registries, for containerd.
	cniPlugins    = machine.Programs + "/cni"
	cniNetworks   = "/var/lib/landscape/cni"
	registries    = machine.State + "/registries"
	containerd    = "/run/containerd/containerd.sock"
	masters       = "system:masters"
	addressOfEtcd = "127.0.0.1:2379"
)

func (l *Landscape) apiServer() string {
	return "https://" + netip.AddrPortFrom(l.Network.Machine().Addr(), apiPort).String()
}

// Registry returns the address of the registry with all images of the landscape.
func (l *Landscape) Registry() string {
	return netip.AddrPortFrom(l.Network.Machine().Addr(), registryPort).String()
}

// services returns the processes of the base cluster.
func (l *Landscape) services() []machine.Service {
	apiServer, socket := l.apiServer()+"/readyz", "unix:"+containerd
	return []machine.Service{
		{Name: "etcd", Args: l.etcd()},
		{Name: "containerd", Args: []string{"containerd", "--config", machine.State + "/containerd.toml"}},
		{Name: "registry", Args: []string{"landscape", "registry", "--images", machine.Images, "--listen", l.Registry()}},
		{Name: "kube-apiserver", Args: l.kubeAPIServer(), After: []string{"tcp:" + addressOfEtcd}},
		{Name: "kube-controller-manager", Args: l.kubeControllerManager(), After: []string{apiServer}},
		{Name: "kube-scheduler", After: []string{apiServer}, Args: append([]string{"kube-scheduler", "--leader-elect=false"},
			kubeconfigFlags("scheduler")...)},
		{Name: "kubelet", After: []string{socket, apiServer}, Args: []string{
			"kubelet", "--config", machine.State + "/kubelet.yaml", "--kubeconfig", kubeconfigs + "kubelet", "--hostname-override", Node,
			"--node-ip", l.Network.Machine().Addr().String(), "--node-labels", "topology.kubernetes.io/zone=base",
		}},
		{Name: "kube-proxy", After: []string{apiServer}, Args: []string{"kube-proxy", "--config", machine.State + "/kube-proxy.yaml"}},
		{Name: "node-agents", After: []string{apiServer}, Args: []string{
			"node-agents", "--kubeconfig", kubeconfigs + "node-agents", "--node", Node, "--network-policies", "--pod-network", cniNetworks,
			"--cluster-pods", l.Network.Pods().String(), "--load-balancers", l.Network.LoadBalancers().String(),
		}},
		{Name: "local-provisioner", After: []string{apiServer}, Args: []string{
			"local-provisioner", "-kubeconfig", kubeconfigs + "node-agents", "-node", Node, "-directory", "/var/lib/landscape/volumes",
		}},
	}
}

func kubeconfigFlags(user string) []string {
	var args []string
	for _, flag := range []string{"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"} {
		args = append(args, "--"+flag+"="+kubeconfigs+user)
	}
	return args
}

func (l *Landscape) etcd() []string {
	return []string{
		"etcd", "--data-dir=/var/lib/etcd", "--unsafe-no-fsync", "--listen-client-urls=http://" + addressOfEtcd,
		"--advertise-client-urls=http://" + addressOfEtcd, "--listen-peer-urls=http://127.0.0.1:2380",
		"--initial-advertise-peer-urls=http://127.0.0.1:2380", "--initial-cluster=default=http://127.0.0.1:2380",
	}
}

func (l *Landscape) kubeAPIServer() []string {
	return []string{
		"kube-apiserver", "--etcd-servers=http://" + addressOfEtcd, "--secure-port=" + strconv.Itoa(apiPort),
		"--advertise-address=" + l.Network.Machine().Addr().String(),
		"--client-ca-file=" + pki + "ca.crt",
		"--tls-cert-file=" + pki + "kube-apiserver.crt", "--tls-private-key-file=" + pki + "kube-apiserver.key",
		"--kubelet-certificate-authority=" + pki + "ca.crt",
		"--kubelet-client-certificate=" + pki + "kubelet-client.crt", "--kubelet-client-key=" + pki + "kubelet-client.key",
		"--kubelet-preferred-address-types=InternalIP,Hostname",
		"--service-account-key-file=" + pki + "tokens.pub", "--service-account-signing-key-file=" + pki + "tokens.key",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--requestheader-client-ca-file=" + pki + "front-proxy-ca.crt", "--requestheader-allowed-names=front-proxy",
		"--proxy-client-cert-file=" + pki + "front-proxy.crt", "--proxy-client-key-file=" + pki + "front-proxy.key",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--enable-bootstrap-token-auth", "--allow-privileged",
		"--enable-aggregator-routing", "--profiling=false", "--service-cluster-ip-range=" + l.Network.Services().String(),
	}
}

func (l *Landscape) kubeControllerManager() []string {
	return append([]string{
		"kube-controller-manager", "--cluster-signing-cert-file=" + pki + "ca.crt", "--cluster-signing-key-file=" + pki + "ca.key",
		"--root-ca-file=" + pki + "ca.crt", "--service-account-private-key-file=" + pki + "tokens.key", "--use-service-account-credentials",
		"--controllers=*,bootstrapsigner,tokencleaner", "--allocate-node-cidrs", "--node-cidr-mask-size=22",
		"--cluster-cidr=" + l.Network.Pods().String(), "--service-cluster-ip-range=" + l.Network.Services().String(), "--leader-elect=false",
	}, kubeconfigFlags("kube-controller-manager")...)
}

// writeFiles writes certificates, kubeconfigs and configurations. It keeps existing files, because the landscape is being
// restarted.
func (l *Landscape) writeFiles() error {
	if _, err := os.Stat(l.Kubeconfig()); err == nil {
		return nil
	}
	ca, err := NewAuthority("landscape")
	if err != nil {
		return err
	}
	frontProxy, err := NewAuthority("landscape-front-proxy")
	if err != nil {
		return err
	}
	files := map[string][]byte{"pki/ca.crt": ca.PEM(), "pki/front-proxy-ca.crt": frontProxy.PEM(), "resolv.conf": []byte("options ndots:1\n")}
	if files["pki/ca.key"], err = ca.KeyPEM(); err != nil {
		return err
	}
	if files["pki/tokens.key"], files["pki/tokens.pub"], err = TokenKeys(); err != nil {
		return err
	}
	if err := l.issue(ca, frontProxy, files); err != nil {
		return err
	}
	if err := l.configure(files); err != nil {
		return err
	}
	admin := files["kubeconfig"]
	delete(files, "kubeconfig")
	if err := secrets(l.Directory, files); err != nil {
		return err
	}
	// The kubeconfig is written last: its existence means that all other files exist.
	return secrets(l.Directory, map[string][]byte{"kubeconfig": admin})
}

func (l *Landscape) issue(ca, frontProxy *Authority, files map[string][]byte) error {
	own, loopback := l.Network.Machine().Addr(), netip.MustParseAddr("127.0.0.1")
	for _, c := range []struct {
		authority        *Authority
		file, user       string
		groups           []string
		addresses        []netip.Addr
		names            []string
		kubeconfig, pair bool
	}{
		{ca, "kube-apiserver", "kube-apiserver", nil, []netip.Addr{own, loopback, l.Network.APIService()}, []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}, false, true},
		{ca, "kubelet-client", "kube-apiserver-kubelet-client", []string{masters}, nil, nil, false, true},
		{frontProxy, "front-proxy", "front-proxy", nil, nil, nil, false, true},
		{ca, "kubelet", "system:node:" + Node, []string{"system:nodes"}, []netip.Addr{own}, []string{Node}, true, true},
		{ca, "kube-controller-manager", "system:kube-controller-manager", nil, nil, nil, true, false},
		{ca, "scheduler", "system:kube-scheduler", nil, nil, nil, true, false},
		{ca, "kube-proxy", "system:kube-proxy", nil, nil, nil, true, false},
		{ca, "node-agents", "landscape:node-agents", []string{masters}, nil, nil, true, false},
		{ca, "admin", "landscape:admin", []string{masters}, nil, nil, true, false},
	} {
		pair, err := c.authority.Issue(c.user, c.groups, c.addresses, c.names...)
		if err != nil {
			return err
		}
		if c.pair {
			files["pki/"+c.file+".crt"], files["pki/"+c.file+".key"] = pair.Certificate, pair.Key
		}
		if c.kubeconfig {
			if files["kubeconfigs/"+c.file], err = ca.Kubeconfig(l.apiServer(), pair); err != nil {
				return fmt.Errorf("creating the kubeconfig of %s: %w", c.user, err)
			}
		}
	}
	files["kubeconfig"] = files["kubeconfigs/admin"]
	delete(files, "kubeconfigs/admin")
	return nil
}

// configure renders the configurations of programs.
func (l *Landscape) configure(files map[string][]byte) error {
	pause, err := l.reference("pause")
	if err != nil {
		return err
	}
	values := map[string]any{
		"Network": l.Network, "DNS": l.Network.DNS(), "Node": Node, "Pause": pause, "Registries": registries, "Plugins": cniPlugins,
		"Networks": cniNetworks, "Runc": machine.Programs + "/runc",
	}
	for name, source := range map[string]string{
		"containerd.toml": l.containerdConfiguration(), "kubelet.yaml": "kubelet.yaml", "kube-proxy.yaml": "kube-proxy.yaml",
	} {
		if files[name], err = render(source, values); err != nil {
			return err
		}
	}
	files["registries/"+registryName+"/hosts.toml"] = HostsFile(l.Registry())
	return nil
}

// render renders a configuration from a template in the directory config.
func render(name string, values map[string]any) ([]byte, error) {
	parsed, err := template.ParseFS(configFiles, "config/"+name)
	if err != nil {
		return nil, fmt.Errorf("the configuration %s: %w", name, err)
	}
	var content bytes.Buffer
	if err := parsed.Execute(&content, values); err != nil {
		return nil, fmt.Errorf("the configuration %s: %w", name, err)
	}
	return content.Bytes(), nil
}

// HostsFile returns containerd's configuration that names the registry with the images of the landscape.
func HostsFile(registry string) []byte {
	return fmt.Appendf(nil, "server = \"http://%s\"\n[host.\"http://%s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", registry, registry)
}
