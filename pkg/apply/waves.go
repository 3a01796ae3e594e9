// Package apply is the server-side-apply engine: it sends objects to the target cluster, and deletes them. It does not
// know ManagedResources.
package apply

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Wave is a step in the order in which objects are applied. Objects are deleted in the reverse order.
type Wave int

// The waves, in the apply order. Objects that contain others or that others reference come first. Objects that can
// reject others come last.
const (
	// WaveNamespaces contains Namespaces, which contain other objects, and PriorityClasses.
	WaveNamespaces Wave = iota
	// WaveDefinitions contains CustomResourceDefinitions.
	WaveDefinitions
	// WaveRoles contains Roles and ClusterRoles. A client that may bind only roles that it holds is denied a binding of a
	// role that does not exist. They are deleted with WaveConfiguration, which is what WaveOf returns: nothing waits for a
	// role to be deleted.
	WaveRoles
	// WaveConfiguration contains identities, permissions, quotas, policies, configuration and storage.
	WaveConfiguration
	// WaveWorkloads contains workloads and the objects that scale and expose them.
	WaveWorkloads
	// WaveCustomResources contains all kinds that are not listed here.
	WaveCustomResources
	// WaveAdmission contains webhook configurations and APIServices. They are applied last, when their backends can serve.
	WaveAdmission
)

// WaveOf returns the wave of a kind.
func WaveOf(gk schema.GroupKind) Wave {
	switch gk {
	case schema.GroupKind{Kind: "Namespace"}, schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:
		return WaveNamespaces
	case object.Definition:
		return WaveDefinitions
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return WaveAdmission
	}
	switch gk.Group {
	case "admissionregistration.k8s.io":
		return WaveAdmission
	case "rbac.authorization.k8s.io", "storage.k8s.io", "flowcontrol.apiserver.k8s.io", "node.k8s.io":
		return WaveConfiguration
	case "apps", "batch", "autoscaling", "extensions":
		return WaveWorkloads
	case "policy":
		return WaveConfiguration
	case "networking.k8s.io":
		return waveOfNetworking(gk.Kind)
	case "":
		return waveOfCore(gk.Kind)
	}
	return WaveCustomResources
}

func waveOfNetworking(kind string) Wave {
	if kind == "Ingress" {
		return WaveWorkloads
	}
	return WaveConfiguration
}

func waveOfCore(kind string) Wave {
	switch kind {
	case "Pod", "ReplicationController":
		return WaveWorkloads
	}
	return WaveConfiguration
}
