package installation

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// ID is a kind and type of extension objects, such as Worker/local.
type ID string

// IDOf returns the ID of a kind and type.
func IDOf(kind, typ string) ID { return ID(kind + "/" + typ) }

// Domain is a default domain for Shoots without their own domain, and the type of its DNS service.
type Domain struct{ Name, Type string }

// wanted are the kinds and types that a Seed needs, each with the first object that needs it.
type wanted map[ID]string

// add adds types of a kind that an object needs.
func (w wanted) add(by, kind string, types ...string) {
	for _, typ := range types {
		if typ == "" {
			continue
		}
		if id := IDOf(kind, typ); w[id] == "" {
			w[id] = by
		}
	}
}

// wantedIn returns the kinds and types that objects in a Seed need.
func wantedIn(in Inputs) wanted {
	w := wanted{}
	types := map[string]string{}
	for _, bucket := range in.Buckets {
		types[bucket.Name] = bucket.Spec.Provider.Type
		if ptr.Deref(bucket.Spec.SeedName, "") == in.Seed.Name {
			w.add("BackupBucket "+bucket.Name, corev1beta1.KindBackupBucket, bucket.Spec.Provider.Type)
		}
	}
	for _, entry := range in.Entries {
		if ptr.Deref(entry.Spec.SeedName, "") == in.Seed.Name || ptr.Deref(entry.Status.SeedName, "") == in.Seed.Name {
			w.add("BackupEntry "+entry.Namespace+"/"+entry.Name, corev1beta1.KindBackupEntry, types[entry.Spec.BucketName])
		}
	}
	for _, shoot := range in.shoots() {
		w.addShoot(in, shoot)
	}
	if in.Seed.DeletionTimestamp == nil {
		w.addSeed(in)
	}
	return w
}

// shoots returns the Shoots whose control planes are in the Seed, or are migrated to or from it.
func (in Inputs) shoots() []*corev1beta1.Shoot {
	var here []*corev1beta1.Shoot
	for _, shoot := range in.Shoots {
		if ptr.Deref(shoot.Spec.SeedName, "") == in.Seed.Name || ptr.Deref(shoot.Status.SeedName, "") == in.Seed.Name {
			here = append(here, shoot)
		}
	}
	return here
}

// addSeed adds the kinds and types that a Seed itself needs.
func (w wanted) addSeed(in Inputs) {
	by, spec := "Seed "+in.Seed.Name, in.Seed.Spec
	if spec.DNS.Provider != nil {
		w.add(by, corev1beta1.KindDNSRecord, spec.DNS.Provider.Type)
	}
	for _, kind := range []string{corev1beta1.KindControlPlane, corev1beta1.KindInfrastructure, corev1beta1.KindWorker} {
		w.add(by, kind, spec.Provider.Type)
	}
	supported := func(corev1beta1.ControllerResource) bool { return true }
	w.add(by, corev1beta1.KindExtension, in.extensions(spec.Extensions, corev1beta1.ClusterTypeSeed, supported)...)
}

// addShoot adds the kinds and types that a Shoot needs in its Seed.
func (w wanted) addShoot(in Inputs, shoot *corev1beta1.Shoot) {
	by, spec, seed := "Shoot "+shoot.Namespace+"/"+shoot.Name, shoot.Spec, in.Seed.Spec
	if seed.Backup != nil {
		w.add(by, corev1beta1.KindBackupBucket, seed.Backup.Provider)
		w.add(by, corev1beta1.KindBackupEntry, seed.Backup.Provider)
	}
	w.add(by, corev1beta1.KindControlPlane, seed.Provider.Type) // exposes the API server
	workerless := len(spec.Provider.Workers) == 0
	if !workerless {
		for _, kind := range []string{corev1beta1.KindControlPlane, corev1beta1.KindInfrastructure, corev1beta1.KindWorker} {
			w.add(by, kind, spec.Provider.Type)
		}
		if spec.Networking != nil {
			w.add(by, corev1beta1.KindNetwork, ptr.Deref(spec.Networking.Type, ""))
		}
	}
	for i := range spec.Provider.Workers {
		w.addPool(by, spec.Provider.Type, &spec.Provider.Workers[i])
	}
	supported := func(resource corev1beta1.ControllerResource) bool {
		return !workerless || ptr.Deref(resource.WorkerlessSupported, false)
	}
	w.add(by, corev1beta1.KindExtension, in.extensions(spec.Extensions, corev1beta1.ClusterTypeShoot, supported)...)
	w.add(by, corev1beta1.KindDNSRecord, in.recordTypes(spec.DNS)...)
}

// addPool adds the kinds and types that a worker pool needs.
func (w wanted) addPool(by, provider string, pool *corev1beta1.Worker) {
	if image := pool.Machine.Image; image != nil {
		w.add(by, corev1beta1.KindOperatingSystemConfig, image.Name)
	}
	if pool.CRI != nil {
		for _, containerRuntime := range pool.CRI.ContainerRuntimes {
			w.add(by, corev1beta1.KindContainerRuntime, containerRuntime.Type)
		}
	}
	if plane := pool.ControlPlane; plane != nil && plane.Exposure != nil && plane.Exposure.Extension != nil {
		w.add(by, corev1beta1.KindSelfHostedShootExposure, ptr.Deref(plane.Exposure.Extension.Type, provider))
	}
}

// extensions returns the types of kind Extension of a cluster: those that it lists, and those that are enabled for all
// clusters of its type and that it does not disable. Registered types must be supported.
func (in Inputs) extensions(
	named []corev1beta1.Extension, of corev1beta1.ClusterType, supported func(corev1beta1.ControllerResource) bool,
) []string {
	decided, unsupported := map[string]bool{}, map[string]bool{}
	for _, extension := range named {
		decided[extension.Type] = !ptr.Deref(extension.Disabled, false)
	}
	for _, registration := range in.Registrations {
		for _, resource := range registration.Spec.Resources {
			if resource.Kind != corev1beta1.KindExtension {
				continue
			}
			if isPrimary(resource) && !supported(resource) {
				unsupported[resource.Type] = true
			}
			if _, known := decided[resource.Type]; !known && slices.Contains(resource.AutoEnable, of) {
				decided[resource.Type] = true
			}
		}
	}
	var types []string
	for typ, enabled := range decided {
		if enabled && !unsupported[typ] {
			types = append(types, typ)
		}
	}
	slices.Sort(types)
	return types
}

// recordTypes returns the types of the DNS services with records of a Shoot: for its own domain and for the internal domain of the Seed.
func (in Inputs) recordTypes(dns *corev1beta1.DNS) []string {
	var types []string
	if internal := in.Seed.Spec.DNS.Internal; internal != nil {
		types = append(types, internal.Type)
	}
	if dns != nil {
		for _, provider := range dns.Providers {
			if ptr.Deref(provider.Primary, false) {
				types = append(types, ptr.Deref(provider.Type, ""))
			}
		}
		for _, domain := range in.defaultDomains() {
			if strings.HasSuffix(ptr.Deref(dns.Domain, ""), "."+domain.Name) {
				types = append(types, domain.Type)
			}
		}
	}
	return slices.DeleteFunc(types, func(typ string) bool { return typ == corev1beta1.DNSUnmanaged })
}

// defaultDomains returns the default domains of the Seed, or those of the garden if it has none.
func (in Inputs) defaultDomains() []Domain {
	if len(in.Seed.Spec.DNS.Defaults) == 0 {
		return in.DefaultDomains
	}
	var domains []Domain
	for _, domain := range in.Seed.Spec.DNS.Defaults {
		domains = append(domains, Domain{domain.Domain, domain.Type})
	}
	return domains
}

// isPrimary reports whether a registration is primarily responsible for the kind and type.
func isPrimary(resource corev1beta1.ControllerResource) bool {
	return ptr.Deref(resource.Primary, true)
}
