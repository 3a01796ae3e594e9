package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func validateNetworking(spec *v1beta1.ShootSpec, c *shootContext, path *field.Path) field.ErrorList {
	networking := spec.Networking
	if networking == nil {
		if c.workerless {
			return nil
		}
		return field.ErrorList{field.Required(path, "a Shoot with worker pools has a network")}
	}
	errs := ipFamilies(networking.IPFamilies, path.Child("ipFamilies"))
	for name, set := range map[string]bool{
		"type": networking.Type != nil, "providerConfig": isSet(networking.ProviderConfig), "pods": networking.Pods != nil,
		"nodes": networking.Nodes != nil,
	} {
		errs = append(errs, c.needsNodes(set, path.Child(name))...)
	}
	if !c.workerless {
		switch {
		case networking.Type == nil || *networking.Type == "":
			errs = append(errs, field.Required(path.Child("type"), ""))
		default:
			errs = append(errs, messages(validation.IsQualifiedName("networking.extensions.gardener.cloud/"+*networking.Type),
				*networking.Type, path.Child("type"))...)
		}
	}
	ranges, found := rangesOf(map[string]*string{"pods": networking.Pods, "nodes": networking.Nodes, "services": networking.Services}, path)
	errs = append(errs, found...)
	var ofIPv4 []namedRange
	for _, one := range ranges {
		if one.prefix.Addr().Is4() {
			ofIPv4 = append(ofIPv4, one)
		}
	}
	errs = append(errs, disjoint(ofIPv4)...)
	errs = append(errs, roomForServices(ranges, c, path.Child("services"))...)
	return append(errs, ofFamily(ranges, networking.IPFamilies)...)
}

// The least numbers of addresses of a range for Services, as powers of two: kube-apiserver does not start with less than 8,
// and the DNS service of a cluster with nodes has the tenth address.
const (
	bitsForServices, bitsForDNS = 3, 4
)

// roomForServices checks that the range for Services is large enough.
func roomForServices(ranges []namedRange, c *shootContext, path *field.Path) field.ErrorList {
	least := bitsForDNS
	if c.workerless {
		least = bitsForServices
	}
	var errs field.ErrorList
	for _, one := range ranges {
		if length := one.prefix.Addr().BitLen() - least; one.name == path.String() && one.prefix.Bits() > length {
			errs = append(errs, field.Invalid(path, one.prefix.String(),
				fmt.Sprintf("must have at least %d addresses: the prefix length must be at most %d", 1<<least, length)))
		}
	}
	return errs
}
