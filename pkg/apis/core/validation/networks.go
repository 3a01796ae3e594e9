package validation

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// namedRange is an address range of a field, or a reserved range.
type namedRange struct {
	prefix netip.Prefix
	path   *field.Path
	name   string
}

// reserved are the ranges that Seeds and Shoots must not use.
func reserved() []namedRange {
	var ranges []namedRange
	for name, value := range map[string]string{
		"the VPN": constants.ReservedVPNRangeIPv6, "the proxies for API servers": constants.ReservedAPIServerProxyRange,
		"pods of Seeds in the VPN": constants.ReservedSeedPodsRange, "nodes in the VPN": constants.ReservedShootNodesRange,
		"Services in the VPN": constants.ReservedShootServicesRange, "pods of Shoots in the VPN": constants.ReservedShootPodsRange,
	} {
		ranges = append(ranges, namedRange{prefix: netip.MustParsePrefix(value), name: name})
	}
	slices.SortFunc(ranges, func(a, b namedRange) int { return a.prefix.Addr().Compare(b.prefix.Addr()) })
	return ranges
}

// rangesOf parses the ranges of fields. It skips fields without a value.
func rangesOf(values map[string]*string, path *field.Path) ([]namedRange, field.ErrorList) {
	var (
		ranges []namedRange
		errs   field.ErrorList
	)
	for _, name := range sortedKeys(values) {
		if values[name] == nil {
			continue
		}
		prefix, found := prefixOf(*values[name], path.Child(name))
		if errs = append(errs, found...); found == nil {
			ranges = append(ranges, namedRange{prefix, path.Child(name), path.Child(name).String()})
		}
	}
	return ranges, errs
}

func sortedKeys[T any](values map[string]T) []string {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// disjoint returns an error for each range that overlaps with a previous one, or with a reserved one.
func disjoint(ranges []namedRange) field.ErrorList {
	var errs field.ErrorList
	for i, one := range ranges {
		for _, other := range append(reserved(), ranges[:i]...) {
			if !one.prefix.Overlaps(other.prefix) {
				continue
			}
			message := fmt.Sprintf("overlaps with %s of %s", other.prefix, other.name)
			if other.path == nil {
				message = fmt.Sprintf("overlaps with %s, which is reserved for %s", other.prefix, other.name)
			}
			errs = append(errs, field.Invalid(one.path, one.prefix.String(), message))
		}
	}
	return errs
}

// ofFamily returns an error for each range that is not of the only family.
func ofFamily(ranges []namedRange, families []v1beta1.IPFamily) field.ErrorList {
	if len(families) != 1 {
		return nil
	}
	var errs field.ErrorList
	for _, one := range ranges {
		if one.prefix.Addr().Is4() != (families[0] == v1beta1.IPFamilyIPv4) {
			errs = append(errs, field.Invalid(one.path, one.prefix.String(), fmt.Sprintf("must be a range of %s addresses", families[0])))
		}
	}
	return errs
}

func ipFamilies(families []v1beta1.IPFamily, path *field.Path) field.ErrorList {
	errs := uniqueValues(families, path)
	for i, family := range families {
		errs = append(errs, oneOf(family, path.Index(i), v1beta1.IPFamilyIPv4, v1beta1.IPFamilyIPv6)...)
	}
	return errs
}
