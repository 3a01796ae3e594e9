package decision

import (
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cidr"
)

// domain passes Seeds that manage the domain of a Shoot. If the domain is below a default domain of some Seed, it has to be <shoot>.<project>.<default
// domain>, and the other Seeds are dropped. Otherwise it is a domain of the user, and all Seeds pass.
func domain(q *Question, seeds []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	if q.Shoot.Spec.DNS == nil || q.Shoot.Spec.DNS.Domain == nil {
		return nil
	}
	wanted := *q.Shoot.Spec.DNS.Domain
	below := func(seed *corev1beta1.Seed) bool {
		return slices.ContainsFunc(seed.Spec.DNS.Defaults, func(one corev1beta1.SeedDNSProviderConfig) bool {
			return strings.HasSuffix(wanted, "."+one.Domain)
		})
	}
	if !slices.ContainsFunc(seeds, below) {
		return nil
	}
	return func(seed *corev1beta1.Seed) string {
		if slices.ContainsFunc(seed.Spec.DNS.Defaults, func(one corev1beta1.SeedDNSProviderConfig) bool {
			return wanted == q.Shoot.Name+"."+q.Project+"."+one.Domain
		}) {
			return ""
		}
		return fmt.Sprintf("does not support the domain %q configured in the shoot specification", wanted)
	}
}

// disjointNetworks passes Seeds whose networks have no address in common with those of the Shoot.
func disjointNetworks(q *Question, _ []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	own, err := cidr.OfShoot(q.Shoot)
	missing := missingNetworks(q.Shoot, own)
	return func(seed *corev1beta1.Seed) string {
		if err != nil {
			return "invalid networks: " + err.Error()
		}
		ranges := own
		if defaults := seed.Spec.Networks.ShootDefaults; len(missing) > 0 {
			inherited, err := defaultNetworks(defaults, missing)
			if err != nil {
				return "invalid networks: " + err.Error()
			}
			ranges = append(slices.Clone(own), inherited...)
		}
		return overlap(ranges, seed)
	}
}

// missingNetworks returns the uses that a Shoot needs but has no range for.
func missingNetworks(shoot *corev1beta1.Shoot, ranges []cidr.Range) (missing []string) {
	if len(shoot.Spec.Provider.Workers) == 0 {
		return nil
	}
	for _, use := range []string{cidr.Pods, cidr.Services} {
		if !slices.ContainsFunc(ranges, func(one cidr.Range) bool { return one.Use == use }) {
			missing = append(missing, use)
		}
	}
	return missing
}

// defaultNetworks returns the ranges for uses from the defaults of a Seed.
func defaultNetworks(defaults *corev1beta1.ShootNetworks, uses []string) ([]cidr.Range, error) {
	values := map[string]*string{}
	for _, use := range uses {
		switch {
		case defaults == nil:
		case use == cidr.Pods:
			values[use] = defaults.Pods
		case use == cidr.Services:
			values[use] = defaults.Services
		}
		if values[use] == nil {
			return nil, fmt.Errorf("neither the shoot nor the seed has a range for the shoot's %s", use)
		}
	}
	return cidr.Parse("seed's default for shoot", values)
}

// overlap returns which range of a Shoot has addresses in common with which one of a Seed, or nothing.
func overlap(ranges []cidr.Range, seed *corev1beta1.Seed) string {
	theirs, err := cidr.OfSeed(seed)
	if err != nil {
		return "invalid networks: " + err.Error()
	}
	ours, their, found := cidr.Overlap(ranges, theirs)
	if !found {
		return ""
	}
	return fmt.Sprintf("invalid networks: the shoot's %s %s overlap with the seed's %s %s", ours.Use, ours.Prefix, their.Use, their.Prefix)
}
