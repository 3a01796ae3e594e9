package live

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
)

// Replicas is whether a workload certainly has 0 replicas, and who set them.
type Replicas uint8

const (
	// ReplicasOther is the value for workloads with at least one replica, for objects whose metadata alone is known, and
	// for other kinds.
	ReplicasOther Replicas = iota
	// ReplicasZeroOfOurs is the value for workloads that the resource-manager set to 0.
	ReplicasZeroOfOurs
	// ReplicasZeroOfOthers is the value for workloads with 0 replicas if the resource-manager does not own the field.
	ReplicasZeroOfOthers
)

// Zero reports whether the object certainly has 0 replicas.
func (r Replicas) Zero() bool { return r != ReplicasOther }

// replicasOf returns whether a whole object has 0 replicas. Entries are its managedFields.
func replicasOf(obj runtime.Object, entries []metav1.ManagedFieldsEntry) Replicas {
	var replicas *int32
	switch workload := obj.(type) {
	case *appsv1.Deployment:
		replicas = workload.Spec.Replicas
	case *appsv1.StatefulSet:
		replicas = workload.Spec.Replicas
	default:
		return ReplicasOther
	}
	switch {
	case ptr.Deref(replicas, 1) != 0:
		return ReplicasOther
	case fieldowner.Owns(entries, fieldowner.Replicas()):
		return ReplicasZeroOfOurs
	}
	return ReplicasZeroOfOthers
}
