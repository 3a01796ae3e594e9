// Package paths has the paths of files on a node that the node agent and kubelet use. They are those of Gardener.
package paths

// Files of the node agent.
const (
	Base           = "/var/lib/gardener-node-agent"
	Temporary      = Base + "/tmp"
	Credentials    = Base + "/credentials"
	BootstrapToken = Credentials + "/bootstrap-token"
	Kubeconfig     = Credentials + "/kubeconfig"
	ClusterCA      = Base + "/cluster-ca.crt"
	MachineName    = Base + "/machine-name"
	Zone           = Base + "/zone"
	InitScript     = Base + "/init.sh"
	// LastApplied is the OperatingSystemConfig that was applied last, Pending the one that is being applied, and Progress the steps of it that
	// are done.
	LastApplied = Base + "/last-applied-osc.yaml"
	Pending     = Base + "/last-computed-osc-changes.yaml"
	Progress    = Base + "/osc-progress.yaml"
	// InPlaceUpdate is the record of an update of the machine in place that was begun.
	InPlaceUpdate = Base + "/in-place-update.yaml"
)

// Files of the operating system: its name and version, and the identity of the boot.
const (
	Release = "/etc/os-release"
	BootID  = "/proc/sys/kernel/random/boot_id"
)

// The program of the node agent, and its units.
const (
	Binaries = "/opt/bin"
	Agent    = Binaries + "/gardener-node-agent"
	// Previous is the program that ran before an update, until the new one has applied its configuration. Refused is a program that did not start.
	Previous = Agent + ".previous"
	Refused  = Agent + ".refused"

	Units        = "/etc/systemd/system"
	AgentUnit    = "gardener-node-agent.service"
	FallbackUnit = "gardener-node-agent-fallback.service"
	InitUnit     = "gardener-node-init.service"
)

// Files of kubelet.
const (
	KubeletUnit       = "kubelet.service"
	KubeletMountUnit  = "var-lib-kubelet.mount"
	KubeletProgram    = Binaries + "/kubelet"
	Kubelet           = "/var/lib/kubelet"
	KubeletCA         = Kubelet + "/ca.crt"
	KubeletConfig     = Kubelet + "/config/kubelet"
	KubeletKubeconfig = Kubelet + "/kubeconfig-real"
	KubeletBootstrap  = Kubelet + "/kubeconfig-bootstrap"
	// KubeletCertificates is the directory of the certificates that kubelet requested.
	KubeletCertificates = Kubelet + "/pki"
	KubeletCertificate  = KubeletCertificates + "/kubelet-client-current.pem"
	KubeletCPUState     = Kubelet + "/cpu_manager_state"
	KubeletHealth       = "http://127.0.0.1:10248/healthz"
)

// Files of containerd.
const (
	ContainerdUnit       = "containerd.service"
	Containerd           = "/etc/containerd"
	ContainerdConfig     = Containerd + "/config.toml"
	ContainerdImports    = Containerd + "/conf.d"
	ContainerdRegistries = Containerd + "/certs.d"
	ContainerdRuntimes   = "/var/bin/containerruntimes"
	ContainerdSocket     = "/run/containerd/containerd.sock"
	ContainerdDropIn     = Units + "/" + ContainerdUnit + ".d/30-env_config.conf"
)
