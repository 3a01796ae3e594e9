package local

import (
	corev1 "k8s.io/api/core/v1"
)

const (
	// Name is the name of the extension, its registration and its program.
	Name = "provider-local"
	// Type is the type of the extension resources for which it is responsible.
	Type = "local"
	// PrefixInfrastructureNamespace is the prefix of the namespace in the seed in which the machines and bastions of a Shoot run.
	PrefixInfrastructureNamespace = "infra-"
	// LabelRole is a label of such namespaces.
	LabelRole = "gardener.cloud/role"
	// RoleInfrastructure is its value.
	RoleInfrastructure = "infra"
	// LabelApp is a label of Pods in such a namespace. Its value is AppMachine or AppBastion.
	LabelApp = "app"
	// AppMachine is the value for machines.
	AppMachine = "machine"
	// AppBastion is the value for bastions.
	AppBastion = "bastion"
	// LabelProvider is a label with the value Type on all machines.
	LabelProvider = "machine-provider"
	// LabelShoot is a label of a machine's ManagedResource with the technical ID of its Shoot.
	LabelShoot = "machine-shoot"
	// LabelMachine is a label with the name of a machine.
	LabelMachine = "machine"
)

// InfrastructureNamespace returns the namespace for the machines of the Shoot with a technical ID.
func InfrastructureNamespace(technicalID string) string {
	return PrefixInfrastructureNamespace + technicalID
}

// Machines are the settings for machines.
type Machines struct {
	// Namespace is that of the extension. It contains the ManagedResources with objects outside the namespaces of control planes.
	Namespace string
	// Simulated creates Nodes that KWOK simulates instead of Pods.
	Simulated bool
	// Environment contains environment variables that all machines have in common.
	Environment []corev1.EnvVar
}
