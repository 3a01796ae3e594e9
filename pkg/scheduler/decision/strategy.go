package decision

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// LabelValueRegionConfig is the purpose of ConfigMaps with distances between regions.
const LabelValueRegionConfig = "region-config"

// Regions are the configured distances from the region of a Shoot to the regions of Seeds.
type Regions struct {
	// Distances are the distances by region. It is nil if none are configured.
	Distances map[string]int
	// Err is why the configuration cannot be used.
	Err error
}

// RegionsFor returns the distances from a region in the first ConfigMap, in the order of names, that names a CloudProfile in its annotation.
func RegionsFor(profile, region string, sorted []*corev1.ConfigMap) Regions {
	for _, config := range sorted {
		for name := range strings.SplitSeq(config.Annotations[constants.AnnotationSchedulingCloudProfiles], ",") {
			if strings.TrimSpace(name) != profile {
				continue
			}
			text, found := config.Data[region]
			if !found {
				return Regions{}
			}
			distances := map[string]int{region: 0}
			if err := yaml.UnmarshalStrict([]byte(text), &distances); err != nil {
				return Regions{Err: fmt.Errorf("the distances from region %q in ConfigMap %s/%s cannot be read: %w", region, config.Namespace, config.Name, err)}
			}
			return Regions{Distances: distances}
		}
	}
	return Regions{}
}

// sameProvider is the strategy for Shoots whose region does not matter.
const sameProvider Strategy = "purpose testing"

// near returns the strategy for a Shoot.
func near(q *Question) Strategy {
	if purpose := q.Shoot.Spec.Purpose; purpose != nil && *purpose == corev1beta1.ShootPurposeTesting {
		return sameProvider
	}
	return q.Strategy
}

// strategy passes the Seeds that the strategy allows.
func strategy(q *Question, seeds []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	var distance func(*corev1beta1.Seed) int
	var reason string
	wanted := q.Shoot.Spec.Provider.Type
	switch near(q) {
	case sameProvider:
		distance = func(seed *corev1beta1.Seed) int { return allow(seed.Spec.Provider.Type == wanted) }
		reason = fmt.Sprintf("is not of the provider %q", wanted)
	case MinimalDistance:
		distance = q.distance(seeds)
		reason = fmt.Sprintf("is not one of the seeds with the least distance to the region %q", q.Shoot.Spec.Region)
	default:
		distance = func(seed *corev1beta1.Seed) int {
			return allow(seed.Spec.Provider.Type == wanted && seed.Spec.Provider.Region == q.Shoot.Spec.Region)
		}
		reason = fmt.Sprintf("is not of the provider %q and the region %q (strategy SameRegion)", wanted, q.Shoot.Spec.Region)
	}
	least := farthest
	for _, seed := range seeds {
		least = min(least, distance(seed))
	}
	return func(seed *corev1beta1.Seed) string {
		if found := distance(seed); found > farthest || found > least {
			return reason
		}
		return ""
	}
}

const (
	// farthest is the greatest distance of a Seed that is possible.
	farthest = 1000
	// never is the distance of a Seed that is not possible.
	never = math.MaxInt
)

func allow(possible bool) int {
	if possible {
		return 0
	}
	return never
}

// distance returns the function for the distance of a Seed: the configured one or, if it is configured for none of the Seeds, one from the names of the
// regions.
func (q *Question) distance(seeds []*corev1beta1.Seed) func(*corev1beta1.Seed) int {
	least, found := never, false
	for _, seed := range seeds {
		if distance, configured := q.Regions.Distances[seed.Spec.Provider.Region]; configured {
			least, found = min(least, distance), true
		}
	}
	if found {
		return func(seed *corev1beta1.Seed) int {
			distance, configured := q.Regions.Distances[seed.Spec.Provider.Region]
			return allow(configured && distance == least)
		}
	}
	return func(seed *corev1beta1.Seed) int {
		distance := NameDistance(q.Shoot.Spec.Region, seed.Spec.Provider.Region)
		if seed.Spec.Provider.Type != q.Shoot.Spec.Provider.Type {
			distance += 2
		}
		return distance
	}
}

// orientations are the parts of names of regions that do not count as text. The first one that is found counts.
var orientations = []string{"north", "south", "east", "west", "central"}

func split(region string) (base, orientation string) {
	for _, orientation := range orientations {
		if before, after, found := strings.Cut(region, orientation); found {
			return before + ":" + after, orientation
		}
	}
	return region, ""
}

// NameDistance returns the distance of two regions by their names: twice the Levenshtein distance without the orientation; 1 more if one name has no
// orientation, 2 more if the orientations differ.
func NameDistance(a, b string) int {
	baseA, orientationA := split(a)
	baseB, orientationB := split(b)
	distance := 2 * levenshtein(baseA, baseB)
	switch {
	case orientationA == orientationB:
	case orientationA == "" || orientationB == "":
		distance++
	default:
		distance += 2
	}
	return distance
}

// levenshtein returns the least number of bytes to insert, delete or replace in order to change one text to another.
func levenshtein(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
