package validation

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

// networks are the ranges of one field.
type networks struct {
	values []string
	path   *field.Path
}

// networksOf returns the ranges that must not overlap.
func networksOf(spec *v1alpha1.GardenSpec, path *field.Path) []networks {
	runtime, at := spec.RuntimeCluster.Networking, path.Child("runtimeCluster", "networking")
	return []networks{
		{runtime.Nodes, at.Child("nodes")}, {runtime.Pods, at.Child("pods")}, {runtime.Services, at.Child("services")},
		{spec.VirtualCluster.Networking.Services, path.Child("virtualCluster", "networking", "services")},
	}
}

// validateNetworks checks that all ranges are valid, and that those of nodes, pods and Services are disjoint.
func validateNetworks(spec *v1alpha1.GardenSpec, path *field.Path) field.ErrorList {
	type known struct {
		netip.Prefix

		path *field.Path
	}
	var errs field.ErrorList
	var before []known
	for _, one := range networksOf(spec, path) {
		for i, value := range one.values {
			at := one.path.Index(i)
			prefix, err := prefixOf(value, at)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			for _, other := range before {
				if prefix.Overlaps(other.Prefix) {
					errs = append(errs, field.Invalid(at, value, fmt.Sprintf("overlaps with %s of %s", other.Prefix, other.path)))
				}
			}
			before = append(before, known{prefix, at})
		}
	}
	blocked := path.Child("runtimeCluster", "networking", "blockCIDRs")
	for i, value := range spec.RuntimeCluster.Networking.BlockCIDRs {
		if _, err := prefixOf(value, blocked.Index(i)); err != nil {
			errs = append(errs, err)
		}
	}
	services := spec.VirtualCluster.Networking.Services
	if len(services) == 2 && isIPv4(services[0]) == isIPv4(services[1]) {
		errs = append(errs, field.Invalid(path.Child("virtualCluster", "networking", "services").Index(1), services[1],
			"must be of another IP family than the first range"))
	}
	return errs
}

// validateNetworksUpdate checks that ranges are only added, because addresses of removed ones are in use.
func validateNetworksUpdate(spec, old *v1alpha1.GardenSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	now := networksOf(spec, path)
	for i, before := range networksOf(old, path) {
		for _, value := range before.values {
			if !slices.Contains(now[i].values, value) {
				errs = append(errs, field.Forbidden(before.path, value+" cannot be removed: ranges can be added only"))
			}
		}
	}
	return errs
}

func prefixOf(value string, path *field.Path) (netip.Prefix, *field.Error) {
	prefix, err := netip.ParsePrefix(value)
	switch {
	case err != nil:
		return prefix, field.Invalid(path, value, "must be a range of addresses in CIDR notation, such as 10.0.0.0/16")
	case prefix != prefix.Masked():
		return prefix, field.Invalid(path, value, fmt.Sprintf("must begin at the first address of the range: %s", prefix.Masked()))
	}
	return prefix, nil
}

func isIPv4(value string) bool {
	prefix, err := netip.ParsePrefix(value)
	return err == nil && prefix.Addr().Is4()
}
