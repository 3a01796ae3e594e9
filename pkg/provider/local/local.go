package local

import (
	corev1 "k8s.io/api/core/v1"
)

const (
	// Name is the name of the extension, of its registration and of its program.
	Name = "provider-local"
	// Type is the type of the extension resources that it is responsible for.
	Type = "local"
	// PrefixInfrastructureNamespace begins the name of the namespace of the seed in which the machines and bastions of a Shoot run.
	PrefixInfrastructureNamespace = "infra-"
	// LabelRole is a label of such namespaces.
	LabelRole = "gardener.cloud/role"
	// RoleInfrastructure is its value.
	RoleInfrastructure = "infra"
	// LabelApp says what a Pod of such a namespace is: AppMachine or AppBastion.
	LabelApp = "app"
	// AppMachine is the value for machines.
	AppMachine = "machine"
	// AppBastion is the value for bastions.
	AppBastion = "bastion"
	// LabelProvider has the value Type for all machines.
	LabelProvider = "machine-provider"
	// LabelMachine is the name of a machine.
	LabelMachine = "machine"
)

// InfrastructureNamespace returns the namespace for the machines of the Shoot with the technical ID.
func InfrastructureNamespace(technicalID string) string {
	return PrefixInfrastructureNamespace + technicalID
}

// Machines says how machines are made.
type Machines struct {
	// Simulated has nodes made that KWOK simulates, in place of Pods.
	Simulated bool
	// Environment are the environment variables of machines, beside those that differ between machines.
	Environment []corev1.EnvVar
}
