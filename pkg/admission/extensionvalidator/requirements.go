package extensionvalidator

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// requirement is a type of extension that an object names.
type requirement struct {
	// kind and typed identify the extension.
	kind, typed string
	// cluster is the kind of cluster that the extension must support; empty if that does not matter.
	cluster gardencorev1beta1.ClusterType
	// workerless demands that it supports Shoots without nodes.
	workerless bool
	// field is where the object names the type, and what it names there.
	field, what string
}

// among reports whether other requirements include this one, wherever they are named.
func (r requirement) among(others []requirement) bool {
	for _, other := range others {
		other.field, other.what = r.field, r.what
		if other == r {
			return true
		}
	}
	return false
}

func (r requirement) refused(object string) *field.Error {
	detail := fmt.Sprintf("given %s uses non-registered %s type: no ControllerRegistration is primary for %s/%s", object[strings.LastIndex(object, ".")+1:], r.what, r.kind, r.typed)
	if r.cluster != "" {
		detail += fmt.Sprintf(" and compatible with a %s", r.cluster)
	}
	if r.workerless {
		detail += " without nodes"
	}
	return field.Invalid(field.NewPath(r.field), r.typed, detail)
}

func ofBucket(bucket *gardencorev1beta1.BackupBucket) []requirement {
	return []requirement{{kind: gardencorev1beta1.KindBackupBucket, typed: bucket.Spec.Provider.Type, field: "spec.provider.type", what: "provider"}}
}

func ofSeed(spec *gardencorev1beta1.SeedSpec) []requirement {
	found := []requirement{{kind: gardencorev1beta1.KindControlPlane, typed: spec.Provider.Type, field: "spec.provider.type", what: "provider"}}
	if backup := spec.Backup; backup != nil {
		for _, kind := range []string{gardencorev1beta1.KindBackupBucket, gardencorev1beta1.KindBackupEntry} {
			found = append(found, requirement{kind: kind, typed: backup.Provider, field: "spec.backup.provider", what: "backup provider"})
		}
	}
	if spec.Ingress != nil && spec.DNS.Provider != nil {
		found = append(found, requirement{kind: gardencorev1beta1.KindDNSRecord, typed: spec.DNS.Provider.Type, field: "spec.dns.provider.type", what: "DNS provider"})
	}
	for i, extension := range spec.Extensions {
		found = append(found, requirement{
			kind: gardencorev1beta1.KindExtension, typed: extension.Type, cluster: gardencorev1beta1.ClusterTypeSeed,
			field: fmt.Sprintf("spec.extensions[%d].type", i), what: "extension",
		})
	}
	return found
}

func ofShoot(spec *gardencorev1beta1.ShootSpec) []requirement {
	var found []requirement
	workerless := len(spec.Provider.Workers) == 0
	if !workerless {
		for _, kind := range []string{gardencorev1beta1.KindControlPlane, gardencorev1beta1.KindInfrastructure, gardencorev1beta1.KindWorker} {
			found = append(found, requirement{kind: kind, typed: spec.Provider.Type, field: "spec.provider.type", what: "provider"})
		}
		if networking := spec.Networking; networking != nil && networking.Type != nil {
			found = append(found, requirement{kind: gardencorev1beta1.KindNetwork, typed: *networking.Type, field: "spec.networking.type", what: "networking"})
		}
	}
	if primary := admission.PrimaryProvider(spec.DNS); primary != nil {
		if typed := ptr.Deref(primary.Type, ""); typed != "" && typed != gardencorev1beta1.DNSUnmanaged {
			found = append(found, requirement{kind: gardencorev1beta1.KindDNSRecord, typed: typed, field: "spec.dns.providers", what: "DNS provider"})
		}
	}
	for i, extension := range spec.Extensions {
		found = append(found, requirement{
			kind: gardencorev1beta1.KindExtension, typed: extension.Type, cluster: gardencorev1beta1.ClusterTypeShoot, workerless: workerless,
			field: fmt.Sprintf("spec.extensions[%d].type", i), what: "extension",
		})
	}
	for i := range spec.Provider.Workers {
		found = append(found, ofPool(&spec.Provider.Workers[i], fmt.Sprintf("spec.provider.workers[%d]", i))...)
	}
	return found
}

func ofPool(pool *gardencorev1beta1.Worker, path string) []requirement {
	var found []requirement
	if pool.CRI != nil {
		for i, runtime := range pool.CRI.ContainerRuntimes {
			found = append(found, requirement{
				kind: gardencorev1beta1.KindContainerRuntime, typed: runtime.Type, field: fmt.Sprintf("%s.cri.containerRuntimes[%d].type", path, i), what: "container runtime",
			})
		}
	}
	if image := pool.Machine.Image; image != nil && image.Name != "" {
		found = append(found, requirement{kind: gardencorev1beta1.KindOperatingSystemConfig, typed: image.Name, field: path + ".machine.image.name", what: "operating system"})
	}
	if exposure := exposureOf(pool); exposure != "" {
		found = append(found, requirement{
			kind: gardencorev1beta1.KindSelfHostedShootExposure, typed: exposure, field: path + ".controlPlane.exposure.extension.type", what: "exposure",
		})
	}
	return found
}

// exposureOf returns the type of the extension that exposes a control plane in a pool; empty if there is none.
func exposureOf(pool *gardencorev1beta1.Worker) string {
	if pool.ControlPlane == nil || pool.ControlPlane.Exposure == nil || pool.ControlPlane.Exposure.Extension == nil {
		return ""
	}
	return ptr.Deref(pool.ControlPlane.Exposure.Extension.Type, "")
}
