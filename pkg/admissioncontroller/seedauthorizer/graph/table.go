package graph

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// Facts are facts about other objects from which the edges of an object follow.
type Facts struct {
	// Registration returns the registration of a Seed, or nil if the Seed does not exist.
	Registration func(seed string) *Registration
	Now          time.Time
}

// Row says which edges follow from an object of a kind.
type Row struct {
	Kind Kind
	// New returns an empty object of the kind.
	New func() client.Object
	// Edges returns the edges, in an order that depends only on the object.
	Edges func(object client.Object, facts Facts) []Edge
	// Reduce returns the parts of an object from which its edges follow, for caches.
	Reduce func(object client.Object) client.Object
}

// Table has a row for each kind from whose objects edges follow. The edges are those of Gardener's seed authorizer, with less access where
// a gardenlet could otherwise extend its own rights (docs/admission-controller.md).
func Table() []Row {
	return []Row{
		row(BackupBucket, ofBackupBucket, reduceBackupBucket),
		row(BackupEntry, ofBackupEntry, reduceBackupEntry),
		row(Bastion, ofBastion, reduceBastion),
		row(CertificateSigningRequest, ofRequest, reduceRequest),
		row(ControllerDeployment, ofDeployment, reduceDeployment),
		row(ControllerInstallation, ofInstallation, reduceInstallation),
		row(CredentialsBinding, ofCredentialsBinding, (*securityv1alpha1.CredentialsBinding).DeepCopy),
		row(Gardenlet, ofGardenlet, (*seedmanagementv1alpha1.Gardenlet).DeepCopy),
		row(ManagedSeed, ofManagedSeed, (*seedmanagementv1alpha1.ManagedSeed).DeepCopy),
		row(Project, ofProject, reduceProject),
		row(SecretBinding, ofSecretBinding, (*corev1beta1.SecretBinding).DeepCopy),
		row(Seed, ofSeed, reduceSeed),
		row(Shoot, ofShoot, reduceShoot),
	}
}

// object is the constraint for the pointer type of a kind.
type object[T any] interface {
	*T
	client.Object
}

// row returns a row from functions for one type.
func row[T any, P object[T]](kind Kind, edges func(P, Facts) []Edge, reduce func(P) P) Row {
	return Row{
		Kind: kind, New: func() client.Object { return P(new(T)) },
		Edges: func(object client.Object, facts Facts) []Edge {
			typed, is := object.(P)
			if !is {
				return nil
			}
			return edges(typed, facts)
		},
		Reduce: func(object client.Object) client.Object {
			if typed, is := object.(P); is {
				return reduce(typed)
			}
			return object
		},
	}
}

// vertexOf returns the vertex of an object.
func vertexOf(kind Kind, object client.Object) Vertex {
	return Vertex{kind, object.GetNamespace(), object.GetName()}
}

// EdgesOf returns the edges that follow from an object of a kind.
func EdgesOf(kind Kind, object client.Object, facts Facts) []Edge {
	return rowOf(kind).Edges(object, facts)
}
