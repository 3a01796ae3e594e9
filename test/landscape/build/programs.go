// Package build builds the programs of a landscape from Go modules whose versions are pinned in this repository, and keeps them: what was
// built from the same modules is not built again.
package build

import "strings"

// Program is a program that is built.
type Program struct {
	// Name is its path below [Directory].
	Name string
	// Module is the directory of the go.mod that pins it, below the root of the repository; "." is the project's own.
	Module string
	// Package is what is built.
	Package string
	// From is the module whose version it has. It is empty for programs of the project.
	From string
	// CGO needs a C compiler.
	CGO bool
	// Tags and Linker are passed to the Go tool. $VERSION in Linker is the version, $MAJOR and $MINOR its parts.
	Tags, Linker string
}

// Directory is where the programs are, below the root of the repository.
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
	stamp        = "k8s.io/component-base/version"
	// Without these, Kubernetes programs report a version that clients cannot parse.
	kubernetesLinker = "-X " + stamp + ".gitVersion=$VERSION -X " + stamp + ".gitMajor=$MAJOR -X " + stamp + ".gitMinor=$MINOR"
)

// Containers are the programs that run containers. Those of the distribution can replace them.
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

// Upstream are the other programs of the base cluster that are not the project's own.
func Upstream() []Program {
	return []Program{
		{Name: "kubelet", Module: controlPlane, Package: kubernetes + "/cmd/kubelet", From: kubernetes, Linker: kubernetesLinker},
		{Name: "kube-proxy", Module: controlPlane, Package: kubernetes + "/cmd/kube-proxy", From: kubernetes, Linker: kubernetesLinker},
		{Name: "coredns", Module: binaries + "coredns", Package: ".", From: "github.com/coredns/coredns"},
		{Name: "local-provisioner", Module: binaries + "provisioner", Package: ".", From: "sigs.k8s.io/sig-storage-lib-external-provisioner/v13"},
	}
}

// Components are programs of others that the components of a seed run. The base cluster does not need them: they are built with their images.
func Components() []Program {
	return []Program{
		{Name: "vpa-admission-controller", Module: binaries + "vpa", Package: autoscaler + "/pkg/admission-controller", From: autoscaler},
		{Name: "vpa-recommender", Module: binaries + "vpa", Package: autoscaler + "/pkg/recommender", From: autoscaler},
		{Name: "vpa-updater", Module: binaries + "vpa", Package: autoscaler + "/pkg/updater", From: autoscaler},
	}
}

// Own are the programs of the project. They are built each time, which the Go tool does in a moment if nothing has changed.
func Own() []Program {
	return []Program{
		{Name: "pause", Module: project, Package: "./test/landscape/programs/pause"},
		{Name: "probe", Module: project, Package: "./test/landscape/programs/probe"},
		{Name: "landscape", Module: project, Package: "./hack/landscape"},
		{Name: "node-agents", Module: project, Package: "./test/landscape/programs/node-agents"},
		{Name: "resource-manager", Module: project, Package: "./cmd/resource-manager"},
		{Name: "apiserver", Module: project, Package: "./cmd/apiserver"},
		{Name: "controller-manager", Module: project, Package: "./cmd/controller-manager"},
		{Name: "gardenlet", Module: project, Package: "./cmd/gardenlet"},
		{Name: "provider-local", Module: project, Package: "./cmd/provider-local"},
		{Name: "etcd-operator", Module: project, Package: "./cmd/etcd-operator"},
		{Name: "etcd-member", Module: project, Package: "./cmd/etcd-member"},
	}
}
