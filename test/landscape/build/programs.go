// Package build builds the programs of a landscape from Go modules whose versions are pinned in this repository. It keeps
// the programs, and rebuilds a program only if its modules change.
package build

import "strings"

// Program describes how a program is built.
type Program struct {
	// Name is the path of the program below [Directory].
	Name string
	// Module is the directory of the go.mod file that pins it, below the root of the repository. "." is the project's own
	// module.
	Module string
	// Package is the Go package of the program.
	Package string
	// From is the module that the program's version is taken from. It is empty for programs of the project.
	From string
	// CGO is true if the build needs a C compiler.
	CGO bool
	// Test is true if the program is the test binary of the package.
	Test bool
	// Tags and Linker are passed to the Go tool. In Linker, $VERSION is replaced by the version, $MAJOR and $MINOR by its
	// parts.
	Tags, Linker string
}

// Directory is the directory of the programs, below the root of the repository.
const Directory = "bin/landscape"

const (
	binaries     = "test/landscape/binaries/"
	controlPlane = "test/controlplane/binaries"
	project      = "."
	containerd   = "github.com/containerd/containerd/v2"
	runc         = "github.com/opencontainers/runc"
	plugins      = "github.com/containernetworking/plugins"
	kubernetes   = "k8s.io/kubernetes"
	autoscaler   = "k8s.io/autoscaler/vertical-pod-autoscaler"
	metrics      = "sigs.k8s.io/metrics-server"
	problems     = "k8s.io/node-problem-detector"
	stamp        = "k8s.io/component-base/version"
	// Without these variables, Kubernetes programs report a version that clients cannot parse.
	kubernetesLinker = "-X " + stamp + ".gitVersion=$VERSION -X " + stamp + ".gitMajor=$MAJOR -X " + stamp + ".gitMinor=$MINOR"
)

// Containers returns the programs that run containers. Those of the distribution can replace them.
func Containers() []Program {
	programs := []Program{
		{Name: "containerd", Package: containerd + "/cmd/containerd", Tags: "no_btrfs no_zfs no_devmapper"},
		{Name: "containerd-shim-runc-v2", Package: containerd + "/cmd/containerd-shim-runc-v2", Tags: "no_btrfs"},
		{Name: "ctr", Package: containerd + "/cmd/ctr", Tags: "no_btrfs"},
	}
	for i := range programs {
		programs[i].Module, programs[i].From = binaries+"containerd", containerd
		programs[i].Linker = "-X " + containerd + "/version.Version=$VERSION"
	}
	programs = append(programs, Program{
		Name: "runc", Module: binaries + "runc", Package: runc, From: runc, CGO: true,
		Tags: "seccomp netgo osusergo", Linker: "-X main.version=$VERSION -linkmode external -extldflags -static",
	})
	for _, p := range []string{"main/bridge", "main/loopback", "ipam/host-local", "meta/portmap"} {
		programs = append(programs, Program{
			Name: "cni/" + p[strings.LastIndex(p, "/")+1:], Module: binaries + "cni", Package: plugins + "/plugins/" + p, From: plugins,
		})
	}
	return programs
}

// Upstream returns the other programs of the base cluster that do not belong to the project.
func Upstream() []Program {
	return []Program{
		{Name: "kubelet", Module: controlPlane, Package: kubernetes + "/cmd/kubelet", From: kubernetes, Linker: kubernetesLinker},
		{Name: "kube-proxy", Module: controlPlane, Package: kubernetes + "/cmd/kube-proxy", From: kubernetes, Linker: kubernetesLinker},
		{Name: "coredns", Module: binaries + "coredns", Package: ".", From: "github.com/coredns/coredns"},
		{Name: "local-provisioner", Module: binaries + "provisioner", Package: ".", From: "sigs.k8s.io/sig-storage-lib-external-provisioner/v13"},
	}
}

// Components returns the programs of other projects that the components of seeds and shoots run. The base cluster does not need
// them. They are built together with their images.
func Components() []Program {
	return []Program{
		{Name: "vpa-admission-controller", Module: binaries + "vpa", Package: autoscaler + "/pkg/admission-controller", From: autoscaler},
		{Name: "vpa-recommender", Module: binaries + "vpa", Package: autoscaler + "/pkg/recommender", From: autoscaler},
		{Name: "vpa-updater", Module: binaries + "vpa", Package: autoscaler + "/pkg/updater", From: autoscaler},
		{Name: "metrics-server", Module: binaries + "metricsserver", Package: metrics + "/cmd/metrics-server", From: metrics, Linker: "-X k8s.io/client-go/pkg/version.gitVersion=$VERSION"},
		// The monitors of systemd's journal need a C library of systemd.
		{Name: "node-problem-detector", Module: binaries + "nodeproblemdetector", Package: problems + "/cmd/nodeproblemdetector", From: problems},
	}
}

// ConformanceDirectory is the directory of the programs of [Conformance], below the root of the repository.
const ConformanceDirectory = "bin/conformance"

// Conformance returns Kubernetes' end-to-end tests and the programs in the images that its conformance tests use.
func Conformance() []Program {
	images := kubernetes + "/test/images/"
	programs := []Program{
		{Name: "e2e.test", Package: kubernetes + "/test/e2e", Test: true},
		{Name: "agnhost", Package: images + "agnhost"},
		{Name: "nonewprivs", Package: images + "nonewprivs"},
		{Name: "sample-apiserver", Package: "k8s.io/sample-apiserver"},
	}
	for i := range programs {
		programs[i].Module, programs[i].From, programs[i].Linker = binaries+"conformance", kubernetes, kubernetesLinker
	}
	return programs
}

// Own returns the programs of the project. They are built on every start. The Go tool skips them quickly if nothing has
// changed.
func Own() []Program {
	return []Program{
		{Name: "pause", Module: project, Package: "./test/landscape/programs/pause"},
		{Name: "probe", Module: project, Package: "./test/landscape/programs/probe"},
		{Name: "landscape", Module: project, Package: "./hack/landscape"},
		{Name: "node-agents", Module: project, Package: "./test/landscape/programs/node-agents"},
		{Name: "resource-manager", Module: project, Package: "./cmd/resource-manager"},
		{Name: "apiserver", Module: project, Package: "./cmd/apiserver"},
		{Name: "controller-manager", Module: project, Package: "./cmd/controller-manager"},
		{Name: "scheduler", Module: project, Package: "./cmd/scheduler"},
		{Name: "admission-controller", Module: project, Package: "./cmd/admission-controller"},
		{Name: "operator", Module: project, Package: "./cmd/operator"},
		{Name: "gardenlet", Module: project, Package: "./cmd/gardenlet"},
		{Name: "provider-local", Module: project, Package: "./cmd/provider-local"},
		{Name: "etcd-operator", Module: project, Package: "./cmd/etcd-operator"},
		{Name: "etcd-member", Module: project, Package: "./cmd/etcd-member"},
		{Name: "tunnel", Module: project, Package: "./cmd/tunnel"},
		{Name: "gateway", Module: project, Package: "./cmd/gateway"},
		{Name: "discovery-server", Module: project, Package: "./cmd/discovery-server"},
		{Name: "gardener-node-agent", Module: project, Package: "./cmd/node-agent"},
	}
}
