// Package extensionvalidation validates the resources of Gardener's extensions, and Etcds.
//
// The validation reads only the request: the metadata, the fields of spec that the types of this package have, and the
// files in the status of OperatingSystemConfigs. Other fields are ignored.
package extensionvalidation

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Kind is a kind of object to validate. Each kind has its own webhook for creations and updates.
type Kind struct {
	// GroupVersionKind identifies the kind of the objects.
	schema.GroupVersionKind
	// Plural is the name of the resource.
	Plural string
	// Namespaced reports whether the objects have a namespace.
	Namespaced bool

	rules rules
}

// Singular returns the singular name of the resource.
func (k Kind) Singular() string { return strings.ToLower(k.Kind) }

// Path returns the path at which gardener-resource-manager serves the webhook of the kind.
func (k Kind) Path() string {
	return "/validate-" + strings.ReplaceAll(k.Group, ".", "-") + "-" + k.Version + "-" + k.Singular()
}

// NewHandler returns the handler of the kind. It allows objects of other kinds.
func (k Kind) NewHandler() admission.Handler {
	return admit.ByKind(map[schema.GroupKind]admission.Handler{k.GroupKind(): admit.Validating(k.validate)})
}

// Kinds returns all kinds that are validated.
func Kinds() []Kind {
	return []Kind{
		extension("BackupBucket", "backupbuckets", false, rulesOf(checkBackupBucket, compareBackupBuckets)),
		extension("BackupEntry", "backupentries", false, rulesOf(checkBackupEntry, compareBackupEntries)),
		extension("Bastion", "bastions", true, rulesOf(checkBastion, compareBastions)),
		extension("ContainerRuntime", "containerruntimes", true, rulesOf(checkContainerRuntime, compareContainerRuntimes)),
		extension("ControlPlane", "controlplanes", true, rulesOf(checkControlPlane, compareControlPlanes)),
		extension("DNSRecord", "dnsrecords", true, rulesOf(checkDNSRecord, compareDNSRecords)),
		extension("Extension", "extensions", true, rulesOf(checkExtension, compareExtensions)),
		extension("Infrastructure", "infrastructures", true, rulesOf(checkInfrastructure, compareInfrastructures)),
		extension("Network", "networks", true, rulesOf(checkNetwork, compareNetworks)),
		extension("OperatingSystemConfig", "operatingsystemconfigs", true, rulesOf(checkOperatingSystemConfig, compareOperatingSystemConfigs)),
		extension("SelfHostedShootExposure", "selfhostedshootexposures", true,
			rulesOf(checkSelfHostedShootExposure, compareSelfHostedShootExposures)),
		extension("Worker", "workers", true, rulesOf(checkWorker, compareWorkers)),
		{
			GroupVersionKind: schema.GroupVersionKind{Group: "druid.gardener.cloud", Version: "v1alpha1", Kind: "Etcd"},
			Plural:           "etcds", Namespaced: true, rules: rulesOf(checkEtcd, compareNothing[etcdSpec]),
		},
	}
}

func extension(kind, plural string, namespaced bool, rules rules) Kind {
	return Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "extensions.gardener.cloud", Version: "v1alpha1", Kind: kind},
		Plural:           plural, Namespaced: namespaced, rules: rules,
	}
}
