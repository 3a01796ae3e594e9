// Package decision decides which Seed hosts a Shoot. It is pure: it reads no cluster and no clock.
package decision

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Strategy determines which of the possible Seeds are near enough to the region of a Shoot.
type Strategy string

// The strategies.
const (
	// SameRegion allows only Seeds of the Shoot's provider type and region.
	SameRegion Strategy = "SameRegion"
	// MinimalDistance allows the Seeds with the least distance to the Shoot's region.
	MinimalDistance Strategy = "MinimalDistance"
)

// Question is all that a decision depends on.
type Question struct {
	// Shoot is the Shoot without a Seed. Its status.networking counts as its networks, too.
	Shoot *corev1beta1.Shoot
	// Seeds are all Seeds.
	Seeds []*corev1beta1.Seed
	// Usage is the number of Shoots of each Seed by its name. Seeds without Shoots can be absent.
	Usage map[string]int
	// Profile is the CloudProfile of the Shoot, or the parent of its NamespacedCloudProfile. It is nil if it does not exist.
	Profile *corev1beta1.CloudProfile
	// Project is the name of the project of the Shoot. It is empty if the project is not known.
	Project string
	// Regions are the distances from the Shoot's region, if they are configured for the CloudProfile.
	Regions Regions
	// Strategy is the configured strategy.
	Strategy Strategy
}

// Answer is a Seed, or the reason why there is none.
type Answer struct {
	// Seed is the name of the chosen Seed. It is empty if there is none.
	Seed string
	// Refused has the reason for each Seed that is not possible, by its name.
	Refused map[string]string
	// Problem is why no Seed was examined. It is empty if Seeds were examined.
	Problem string
}

// ReasonFull is the reason of Seeds that host as many Shoots as they can.
const ReasonFull = "does not have available capacity for shoots"

// filter returns a function that returns why a Seed is not possible, or nothing if it is. seeds are the Seeds that passed the filters before.
type filter func(q *Question, seeds []*corev1beta1.Seed) func(*corev1beta1.Seed) string

// filters are all filters in their order, which determines the reasons of a Seed with several ones.
var filters = []filter{
	usable, selectedByProfile, selectedByShoot, provider, threeZones, requestedZones, enforcedZones, preferredZones, accessRestrictions, domain, notStopped,
	disjointNetworks, tolerated, capacity, strategy,
}

// Decide chooses the Seed with the least Shoots of those that pass all filters. The first one by name wins a tie.
func Decide(q *Question) Answer {
	answer := Answer{Refused: map[string]string{}}
	switch {
	case q.Profile == nil:
		answer.Problem = "its CloudProfile does not exist"
	case q.Regions.Err != nil && near(q) == MinimalDistance:
		answer.Problem = q.Regions.Err.Error()
	case len(q.Seeds) == 0:
		answer.Problem = "there are no Seeds"
	}
	if answer.Problem != "" {
		return answer
	}
	left := q.Seeds
	for _, filter := range filters {
		reason := filter(q, left)
		if reason == nil {
			continue
		}
		passed := make([]*corev1beta1.Seed, 0, len(left))
		for _, seed := range left {
			if text := reason(seed); text != "" {
				answer.Refused[seed.Name] = text
			} else {
				passed = append(passed, seed)
			}
		}
		left = passed
	}
	if len(left) > 0 {
		answer.Seed = slices.MinFunc(left, func(a, b *corev1beta1.Seed) int {
			if difference := q.Usage[a.Name] - q.Usage[b.Name]; difference != 0 {
				return difference
			}
			return strings.Compare(a.Name, b.Name)
		}).Name
	}
	return answer
}

// namesPerReason is the maximum number of Seeds that are named for each reason.
const namesPerReason = 5

// Text returns why there is no Seed, for users. Seeds with the same reason are grouped. The text depends only on the reasons and the names.
func (a Answer) Text() string {
	if a.Problem != "" {
		return a.Problem
	}
	byReason := map[string][]string{}
	for _, seed := range slices.Sorted(maps.Keys(a.Refused)) {
		byReason[a.Refused[seed]] = append(byReason[a.Refused[seed]], seed)
	}
	var groups []string
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		seeds := byReason[reason]
		names := strings.Join(seeds[:min(len(seeds), namesPerReason)], ", ")
		if more := len(seeds) - namesPerReason; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		groups = append(groups, names+" => "+reason)
	}
	return fmt.Sprintf("0/%d seed cluster candidate(s) are eligible for scheduling: {%s}", len(a.Refused), strings.Join(groups, "; "))
}

// Full reports whether a Seed was refused only because it hosts as many Shoots as it can.
func (a Answer) Full(seed string) bool { return a.Refused[seed] == ReasonFull }
