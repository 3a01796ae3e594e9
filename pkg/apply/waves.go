// Package apply is the server-side-apply engine: it sends objects to the target cluster and deletes them again. It
// knows objects, not ManagedResources.
package apply

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Wave is a step in the order in which objects are applied. Deletion goes through the waves backwards.
type Wave int

// The waves, in the order of applying: what others live in or refer to comes first, and what can reject others comes
// last.
const (
	// WaveNamespaces holds what other objects live in.
	WaveNamespaces Wave = iota
	// WaveDefinitions holds the kinds of other objects.
	WaveDefinitions
	// WaveConfiguration holds identities, permissions, quotas, policies, configuration and storage.
	WaveConfiguration
	// WaveWorkloads holds what runs, and what scales and exposes it.
	WaveWorkloads
	// WaveCustomResources holds every kind that is not listed here.
	WaveCustomResources
	// WaveAdmission holds webhook configurations and APIServices: they are applied last, once their backends can serve.
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
