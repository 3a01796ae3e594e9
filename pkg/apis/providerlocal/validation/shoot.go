package validation

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
)

// ValidateInfrastructureConfig checks the configuration of an Infrastructure. pods and services are the ranges of the
// Shoot. They are empty if they are not known.
func ValidateInfrastructureConfig(config *v1alpha1.InfrastructureConfig, pods, services string, path *field.Path) field.ErrorList {
	if config.Networks == nil || config.Networks.Nodes == nil {
		return nil
	}
	path = path.Child("networks", "nodes")
	nodes, err := parseRange(*config.Networks.Nodes)
	if err != nil {
		return field.ErrorList{field.Invalid(path, *config.Networks.Nodes, err.Error())}
	}
	var errs field.ErrorList
	ranges := map[string]string{"pods": pods, "services": services}
	for _, name := range slices.Sorted(maps.Keys(ranges)) {
		if other, err := parseRange(ranges[name]); err == nil && other.Overlaps(nodes) {
			errs = append(errs, field.Invalid(path, nodes.String(), fmt.Sprintf("must not overlap with the range of %s, %s", name, other)))
		}
	}
	return errs
}

// parseRange reads a range in CIDR notation.
func parseRange(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("must be a range of addresses in CIDR notation, such as 10.0.0.0/16")
	}
	if prefix != prefix.Masked() {
		return netip.Prefix{}, fmt.Errorf("must begin with the first address of the range: %s", prefix.Masked())
	}
	return prefix, nil
}

// ValidateInfrastructureConfigUpdate checks the configuration of an Infrastructure that replaces another. The address
// ranges of machines must not change.
func ValidateInfrastructureConfigUpdate(config, old *v1alpha1.InfrastructureConfig, path *field.Path) field.ErrorList {
	nodes := func(config *v1alpha1.InfrastructureConfig) string {
		if config == nil || config.Networks == nil || config.Networks.Nodes == nil {
			return ""
		}
		return *config.Networks.Nodes
	}
	if before := nodes(old); before != "" && before != nodes(config) {
		return field.ErrorList{field.Invalid(path.Child("networks", "nodes"), nodes(config), "must stay "+before+": the field is immutable")}
	}
	return nil
}

// ValidateWorkerConfig checks the configuration of a worker pool.
func ValidateWorkerConfig(config *v1alpha1.WorkerConfig, path *field.Path) field.ErrorList {
	if config.Resources == nil {
		return nil
	}
	var errs field.ErrorList
	path = path.Child("resources")
	if len(config.Resources.Claims) > 0 {
		errs = append(errs, field.Forbidden(path.Child("claims"), "must not be set"))
	}
	for child, list := range map[string]corev1.ResourceList{"requests": config.Resources.Requests, "limits": config.Resources.Limits} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			at, quantity := path.Child(child).Key(string(name)), list[name]
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
				errs = append(errs, field.NotSupported(at, name, []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}))
			} else if quantity.Sign() <= 0 {
				errs = append(errs, field.Invalid(at, quantity.String(), "must be above 0"))
			}
		}
	}
	for name, limit := range config.Resources.Limits {
		if request, found := config.Resources.Requests[name]; found && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests").Key(string(name)), request.String(),
				"must be at most the limit "+limit.String()))
		}
	}
	return errs
}

// ValidateWorkers checks the worker pools of a Shoot. Machines have no additional disks.
func ValidateWorkers(workers []gardencorev1beta1.Worker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, worker := range workers {
		at := path.Index(i)
		if len(worker.DataVolumes) > 0 {
			errs = append(errs, field.Forbidden(at.Child("dataVolumes"), "must not be set: machines of this provider have no further disks"))
		}
	}
	return errs
}
