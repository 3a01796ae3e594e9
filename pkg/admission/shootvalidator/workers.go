package shootvalidator

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// pool is a worker pool that is new, or that replaces another one.
type pool struct {
	*change

	worker *gardencorev1beta1.Worker
	// before is the stored pool; nil if the pool is new.
	before *gardencorev1beta1.Worker
	// machine is the machine type; nil if the profile does not have it.
	machine *gardencorev1beta1.MachineType
	// added are the zones that the request adds to the pool.
	added []string
	path  *field.Path
}

// checksOfPool are the rules for a pool, in their order.
var checksOfPool = []func(*pool) field.ErrorList{
	(*pool).machineType, (*pool).architecture, (*pool).image, (*pool).containerRuntimes, (*pool).volumes, (*pool).reserved, (*pool).kubelet,
	(*pool).zones,
}

// workers checks the pools that are new or changed.
func (c *change) workers() field.ErrorList {
	var errs field.ErrorList
	sameKubernetes := !differs(c, func(spec *gardencorev1beta1.ShootSpec) []any {
		return []any{spec.Kubernetes.Version, spec.Kubernetes.Kubelet}
	})
	for i := range c.shoot.Spec.Provider.Workers {
		worker := &c.shoot.Spec.Provider.Workers[i]
		before := workerOf(c.old, worker.Name)
		if before != nil && sameKubernetes && equality.Semantic.DeepEqual(worker, before) {
			continue
		}
		p := &pool{
			change: c, worker: worker, before: before, machine: cloudprofile.FindMachineType(c.profile.Spec, worker.Machine.Type),
			added: worker.Zones, path: field.NewPath("spec", "provider", "workers").Index(i),
		}
		if before != nil {
			p.added = slices.DeleteFunc(slices.Clone(worker.Zones), func(zone string) bool { return slices.Contains(before.Zones, zone) })
		}
		for _, check := range checksOfPool {
			errs = append(errs, check(p)...)
		}
	}
	return errs
}

func workerOf(shoot *gardencorev1beta1.Shoot, name string) *gardencorev1beta1.Worker {
	if shoot == nil {
		return nil
	}
	i := slices.IndexFunc(shoot.Spec.Provider.Workers, func(worker gardencorev1beta1.Worker) bool { return worker.Name == name })
	if i < 0 {
		return nil
	}
	return &shoot.Spec.Provider.Workers[i]
}

// changesPart reports whether a part of the pool changes. All parts of a new pool do.
func changesPart[T any](p *pool, part func(*gardencorev1beta1.Worker) T) bool {
	return p.before == nil || !equality.Semantic.DeepEqual(part(p.worker), part(p.before))
}

func machineTypeOf(worker *gardencorev1beta1.Worker) string { return worker.Machine.Type }

func architectureOf(worker *gardencorev1beta1.Worker) string {
	if worker.Machine.Architecture == nil {
		return gardencorev1beta1.ArchitectureAMD64
	}
	return *worker.Machine.Architecture
}

// machineType checks that the profile has the machine type, and that it is available in the zones of the pool.
func (p *pool) machineType() field.ErrorList {
	path, name := p.path.Child("machine", "type"), p.worker.Machine.Type
	zones := p.added
	if changesPart(p, machineTypeOf) {
		zones = p.worker.Zones
		switch {
		case p.machine == nil:
			return field.ErrorList{field.Invalid(path, name, "the CloudProfile does not have this machine type")}
		case p.machine.Usable != nil && !*p.machine.Usable:
			return field.ErrorList{field.Invalid(path, name, "the CloudProfile does not allow this machine type for new pools")}
		}
	}
	return p.available(zones, path, name, func(zone *gardencorev1beta1.AvailabilityZone) []string { return zone.UnavailableMachineTypes })
}

// available checks that a machine type or volume type is available in zones.
func (p *pool) available(zones []string, path *field.Path, name string, missing func(*gardencorev1beta1.AvailabilityZone) []string) field.ErrorList {
	region := cloudprofile.FindRegion(p.profile.Spec, p.shoot.Spec.Region)
	for _, zone := range zones {
		if found := cloudprofile.FindZone(region, zone); found != nil && slices.Contains(missing(found), name) {
			return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("is not available in the zone %q", zone))}
		}
	}
	return nil
}

// architecture checks that the machine type has the architecture of the pool.
func (p *pool) architecture() field.ErrorList {
	if p.machine == nil || !changesPart(p, machineTypeOf) && !changesPart(p, architectureOf) {
		return nil
	}
	offered := cloudprofile.ArchitecturesOf(p.profile.Spec, p.machine)
	if own := architectureOf(p.worker); !slices.Contains(offered, own) {
		return field.ErrorList{field.Invalid(p.path.Child("machine", "architecture"), own, fmt.Sprintf("the machine type %q has %v", p.machine.Name, offered))}
	}
	return nil
}

// zones checks that the region has the zones that the request adds to the pool.
func (p *pool) zones() field.ErrorList {
	region := cloudprofile.FindRegion(p.profile.Spec, p.shoot.Spec.Region)
	if region == nil {
		return nil
	}
	var errs field.ErrorList
	for i, zone := range p.worker.Zones {
		if slices.Contains(p.added, zone) && cloudprofile.FindZone(region, zone) == nil {
			errs = append(errs, field.Invalid(p.path.Child("zones").Index(i), zone, fmt.Sprintf("the CloudProfile does not have this zone in the region %q", region.Name)))
		}
	}
	return errs
}
