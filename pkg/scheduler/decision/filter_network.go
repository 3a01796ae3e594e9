package decision

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
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

// network is one address range with the name of its use.
type network struct {
	use    string
	prefix netip.Prefix
}

// disjointNetworks passes Seeds whose networks have no address in common with those of the Shoot.
func disjointNetworks(q *Question, _ []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	own, missing, err := networksOfShoot(q.Shoot)
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

// networksOfShoot returns the ranges of a Shoot in its specification and status, and the uses that it needs but has no range for.
func networksOfShoot(shoot *corev1beta1.Shoot) (ranges []network, missing []string, err error) {
	values := map[string][]string{}
	if networking := shoot.Spec.Networking; networking != nil {
		for use, value := range map[string]*string{"nodes": networking.Nodes, "pods": networking.Pods, "services": networking.Services} {
			if value != nil {
				values[use] = append(values[use], *value)
			}
		}
	}
	if status := shoot.Status.Networking; status != nil {
		values["nodes"] = append(values["nodes"], status.Nodes...)
		values["pods"] = append(values["pods"], status.Pods...)
		values["services"] = append(values["services"], status.Services...)
	}
	for _, use := range []string{"nodes", "pods", "services"} {
		if len(values[use]) == 0 && use != "nodes" && len(shoot.Spec.Provider.Workers) > 0 {
			missing = append(missing, use)
		}
		for _, value := range values[use] {
			prefix, err := netip.ParsePrefix(value)
			if err != nil {
				return nil, nil, fmt.Errorf("the shoot's %s are not a range: %w", use, err)
			}
			ranges = append(ranges, network{use, prefix})
		}
	}
	return ranges, missing, nil
}

// defaultNetworks returns the ranges for uses from the defaults of a Seed.
func defaultNetworks(defaults *corev1beta1.ShootNetworks, uses []string) ([]network, error) {
	values := map[string]*string{}
	if defaults != nil {
		values["pods"], values["services"] = defaults.Pods, defaults.Services
	}
	var ranges []network
	for _, use := range uses {
		if values[use] == nil {
			return nil, fmt.Errorf("neither the shoot nor the seed has a range for the shoot's %s", use)
		}
		prefix, err := netip.ParsePrefix(*values[use])
		if err != nil {
			return nil, fmt.Errorf("the seed's default for the shoot's %s is not a range: %w", use, err)
		}
		ranges = append(ranges, network{use, prefix})
	}
	return ranges, nil
}

// overlap returns which range of a Shoot has addresses in common with which one of a Seed, or nothing.
func overlap(ranges []network, seed *corev1beta1.Seed) string {
	networks := seed.Spec.Networks
	for _, theirs := range []struct {
		use   string
		value *string
	}{{"nodes", networks.Nodes}, {"pods", &networks.Pods}, {"services", &networks.Services}} {
		if theirs.value == nil || *theirs.value == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(*theirs.value)
		if err != nil {
			return fmt.Sprintf("invalid networks: the seed's %s are not a range: %v", theirs.use, err)
		}
		for _, ours := range ranges {
			if ours.prefix.Overlaps(prefix) {
				return fmt.Sprintf("invalid networks: the shoot's %s %s overlap with the seed's %s %s", ours.use, ours.prefix, theirs.use, prefix)
			}
		}
	}
	return ""
}
