// Package cidr compares the address ranges of Shoots and Seeds. It is pure.
package cidr

import (
	"fmt"
	"net/netip"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// The uses of ranges.
const (
	Nodes    = "nodes"
	Pods     = "pods"
	Services = "services"
)

// Range is an address range with its use.
type Range struct {
	Use    string
	Prefix netip.Prefix
}

// Parse returns the ranges of the values of uses. It skips values that are nil or empty. Errors name the owner of the values.
func Parse(owner string, values map[string]*string) ([]Range, error) {
	var ranges []Range
	for _, use := range []string{Nodes, Pods, Services} {
		value := values[use]
		if value == nil || *value == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(*value)
		if err != nil {
			return nil, fmt.Errorf("the %s's %s are not a range: %w", owner, use, err)
		}
		ranges = append(ranges, Range{use, prefix})
	}
	return ranges, nil
}

// OfSeed returns the ranges of a Seed.
func OfSeed(seed *corev1beta1.Seed) ([]Range, error) {
	networks := &seed.Spec.Networks
	return Parse("seed", map[string]*string{Nodes: networks.Nodes, Pods: &networks.Pods, Services: &networks.Services})
}

// OfShoot returns the ranges of a Shoot in its specification and its status.
func OfShoot(shoot *corev1beta1.Shoot) ([]Range, error) {
	var ranges []Range
	if networking := shoot.Spec.Networking; networking != nil {
		var err error
		ranges, err = Parse("shoot", map[string]*string{Nodes: networking.Nodes, Pods: networking.Pods, Services: networking.Services})
		if err != nil {
			return nil, err
		}
	}
	status := shoot.Status.Networking
	if status == nil {
		return ranges, nil
	}
	for use, values := range map[string][]string{Nodes: status.Nodes, Pods: status.Pods, Services: status.Services} {
		for _, value := range values {
			further, err := Parse("shoot", map[string]*string{use: &value})
			if err != nil {
				return nil, err
			}
			ranges = append(ranges, further...)
		}
	}
	return ranges, nil
}

// Overlap returns the first range of ours that has an address in common with one of theirs, and that one. It reports whether there is
// one.
func Overlap(ours, theirs []Range) (our, their Range, found bool) {
	for _, their := range theirs {
		for _, our := range ours {
			if our.Prefix.Overlaps(their.Prefix) {
				return our, their, true
			}
		}
	}
	return Range{}, Range{}, false
}
