// Package extensionobjects reads the objects of extensions in the control planes of Shoots: the conditions that
// extensions report, and the states that are restored after a migration to another Seed. All controllers for Shoots share
// one watch of each kind.
package extensionobjects

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// Names of kinds with exceptions: BackupEntries have no namespace, and Bastions belong to users.
const (
	kindBackupEntry = "BackupEntry"
	kindWorker      = "Worker"
	KindBastion     = "Bastion"
)

// Kind is a kind of extension objects.
type Kind struct {
	Name string
	// Contributes is set if conditions of the objects contribute to those of the Shoot. Stored is set if the ShootState
	// contains their states (Gardener).
	Contributes, Stored bool
	// New returns an empty object.
	New func() extensionsv1alpha1.Object

	plural  string
	NewList func() client.ObjectList
}

// definition returns the name of the CustomResourceDefinition.
func (k Kind) definition() string { return k.plural + ".extensions.gardener.cloud" }

var kinds = []Kind{
	{
		"Extension", true, true, func() extensionsv1alpha1.Object { return &extensionsv1alpha1.Extension{} }, "extensions",
		func() client.ObjectList { return &extensionsv1alpha1.ExtensionList{} },
	},
	{
		"ContainerRuntime", true, true, func() extensionsv1alpha1.Object { return &extensionsv1alpha1.ContainerRuntime{} },
		"containerruntimes", func() client.ObjectList { return &extensionsv1alpha1.ContainerRuntimeList{} },
	},
	{
		"ControlPlane", true, true, func() extensionsv1alpha1.Object { return &extensionsv1alpha1.ControlPlane{} }, "controlplanes",
		func() client.ObjectList { return &extensionsv1alpha1.ControlPlaneList{} },
	},
	{
		"Infrastructure", true, true, func() extensionsv1alpha1.Object { return &extensionsv1alpha1.Infrastructure{} }, "infrastructures",
		func() client.ObjectList { return &extensionsv1alpha1.InfrastructureList{} },
	},
	{
		"Network", true, true, func() extensionsv1alpha1.Object { return &extensionsv1alpha1.Network{} }, "networks",
		func() client.ObjectList { return &extensionsv1alpha1.NetworkList{} },
	},
	{
		"OperatingSystemConfig", true, true, func() extensionsv1alpha1.Object { return &extensionsv1alpha1.OperatingSystemConfig{} },
		"operatingsystemconfigs", func() client.ObjectList { return &extensionsv1alpha1.OperatingSystemConfigList{} },
	},
	{
		kindWorker, true, true, func() extensionsv1alpha1.Object { return &extensionsv1alpha1.Worker{} }, "workers",
		func() client.ObjectList { return &extensionsv1alpha1.WorkerList{} },
	},
	{
		kindBackupEntry, true, true, func() extensionsv1alpha1.Object { return &extensionsv1alpha1.BackupEntry{} }, "backupentries",
		func() client.ObjectList { return &extensionsv1alpha1.BackupEntryList{} },
	},
	{
		"DNSRecord", false, true, func() extensionsv1alpha1.Object { return &extensionsv1alpha1.DNSRecord{} }, "dnsrecords",
		func() client.ObjectList { return &extensionsv1alpha1.DNSRecordList{} },
	},
	{
		"SelfHostedShootExposure", false, true, func() extensionsv1alpha1.Object { return &extensionsv1alpha1.SelfHostedShootExposure{} },
		"selfhostedshootexposures", func() client.ObjectList { return &extensionsv1alpha1.SelfHostedShootExposureList{} },
	},
	{
		KindBastion, false, false, func() extensionsv1alpha1.Object { return &extensionsv1alpha1.Bastion{} }, "bastions",
		func() client.ObjectList { return &extensionsv1alpha1.BastionList{} },
	},
}

// Contributing returns the kinds whose conditions contribute to those of Shoots.
func Contributing() []Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(kind Kind) bool { return !kind.Contributes })
}

// Stored returns the kinds whose states a ShootState contains.
func Stored() []Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(kind Kind) bool { return !kind.Stored })
}

// Bastions returns the kind Bastion: hosts through which users reach nodes.
func Bastions() Kind { return named(KindBastion) }

func named(name string) Kind {
	return kinds[slices.IndexFunc(kinds, func(kind Kind) bool { return kind.Name == name })]
}
