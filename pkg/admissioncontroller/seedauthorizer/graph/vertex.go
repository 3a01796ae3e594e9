// Package graph relates objects of the garden to the Seeds and self-hosted Shoots that need them. An edge from one object to
// another means that a program that works for the second one needs the first one. [Table] says which edges follow from an object of
// each kind. [Watcher] keeps the graph up to date.
package graph

import "slices"

// Kind is the kind of an object in the graph.
type Kind string

// The kinds of vertices.
const (
	BackupBucket              Kind = "BackupBucket"
	BackupEntry               Kind = "BackupEntry"
	Bastion                   Kind = "Bastion"
	CertificateSigningRequest Kind = "CertificateSigningRequest"
	CloudProfile              Kind = "CloudProfile"
	ClusterRoleBinding        Kind = "ClusterRoleBinding"
	ConfigMap                 Kind = "ConfigMap"
	ControllerDeployment      Kind = "ControllerDeployment"
	ControllerInstallation    Kind = "ControllerInstallation"
	ControllerRegistration    Kind = "ControllerRegistration"
	CredentialsBinding        Kind = "CredentialsBinding"
	ExposureClass             Kind = "ExposureClass"
	Gardenlet                 Kind = "Gardenlet"
	InternalSecret            Kind = "InternalSecret"
	Lease                     Kind = "Lease"
	ManagedSeed               Kind = "ManagedSeed"
	Namespace                 Kind = "Namespace"
	NamespacedCloudProfile    Kind = "NamespacedCloudProfile"
	Project                   Kind = "Project"
	Secret                    Kind = "Secret"
	SecretBinding             Kind = "SecretBinding"
	Seed                      Kind = "Seed"
	ServiceAccount            Kind = "ServiceAccount"
	Shoot                     Kind = "Shoot"
	ShootState                Kind = "ShootState"
	WorkloadIdentity          Kind = "WorkloadIdentity"
)

// Vertex is an object. The namespace is empty for kinds without namespaces.
type Vertex struct {
	Kind            Kind
	Namespace, Name string
}

// String returns the vertex as text, such as "Secret garden/backup".
func (v Vertex) String() string {
	if v.Namespace == "" {
		return string(v.Kind) + " " + v.Name
	}
	return string(v.Kind) + " " + v.Namespace + "/" + v.Name
}

// Access is what an edge permits. A path permits what all its edges permit.
type Access uint8

// The levels of access. Each includes those before it.
const (
	// Read permits to get, list and watch.
	Read Access = iota
	// Protect permits to change the object, such as its finalizers. Policies of gardenlet's chart protect the content of credentials.
	Protect
	// Own permits everything, such as the deletion.
	Own
)

// String returns the level as text.
func (a Access) String() string { return [...]string{"read", "protect", "own"}[a] }

// Edge is an edge with its access.
type Edge struct {
	From, To Vertex
	Access   Access
}

func sameEdges(a, b []Edge) bool { return slices.Equal(a, b) }
