package decision

import (
	"fmt"
	"slices"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// zonesForFailures is the number of zones that a Seed needs for control planes that survive the failure of a zone.
const zonesForFailures = 3

// survivesZone reports whether a control plane survives the failure of a zone.
func survivesZone(shoot *corev1beta1.Shoot) bool {
	plane := shoot.Spec.ControlPlane
	return plane != nil && plane.HighAvailability != nil && plane.HighAvailability.FailureTolerance.Type == corev1beta1.FailureToleranceTypeZone
}

// threeZones passes Seeds with enough zones for a control plane that survives the failure of one.
func threeZones(q *Question, _ []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	if !survivesZone(q.Shoot) {
		return nil
	}
	return func(seed *corev1beta1.Seed) string {
		if len(seed.Spec.Provider.Zones) < zonesForFailures {
			return fmt.Sprintf("does not have at least %d zones for hosting a shoot control plane with failure tolerance type 'zone'", zonesForFailures)
		}
		return ""
	}
}

func zonesRequested(shoot *corev1beta1.Shoot) []string {
	if shoot.Spec.ControlPlane == nil {
		return nil
	}
	return shoot.Spec.ControlPlane.Zones
}

// requestedZones passes Seeds with all zones that the Shoot requests for its control plane.
func requestedZones(q *Question, _ []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	zones := zonesRequested(q.Shoot)
	if len(zones) == 0 || survivesZone(q.Shoot) {
		return nil
	}
	return func(seed *corev1beta1.Seed) string {
		for _, zone := range zones {
			if !slices.Contains(seed.Spec.Provider.Zones, zone) {
				return fmt.Sprintf("does not contain all requested control plane zones %v", zones)
			}
		}
		return ""
	}
}

// zonesOfWorkers returns the zones of all worker pools. It is empty if the zones of the workers do not matter.
func zonesOfWorkers(shoot *corev1beta1.Shoot) map[string]bool {
	zones := map[string]bool{}
	if survivesZone(shoot) || len(zonesRequested(shoot)) > 0 {
		return zones
	}
	for i := range shoot.Spec.Provider.Workers {
		for _, zone := range shoot.Spec.Provider.Workers[i].Zones {
			zones[zone] = true
		}
	}
	return zones
}

// ZoneSelection returns the mode of a Seed for the zones of control planes. It is empty if the zones of workers do not matter.
func ZoneSelection(seed *corev1beta1.Seed) corev1beta1.ZoneSelectionMode {
	if settings := seed.Spec.Settings; settings != nil && settings.ZoneSelection != nil {
		return settings.ZoneSelection.Mode
	}
	return ""
}

// apart reports whether a Seed of a mode has none of the zones of the workers.
func apart(seed *corev1beta1.Seed, workers map[string]bool, mode corev1beta1.ZoneSelectionMode) bool {
	return len(workers) > 0 && ZoneSelection(seed) == mode &&
		!slices.ContainsFunc(seed.Spec.Provider.Zones, func(zone string) bool { return workers[zone] })
}

// enforcedZones drops Seeds that take only Shoots with workers in their zones.
func enforcedZones(q *Question, _ []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	workers := zonesOfWorkers(q.Shoot)
	return func(seed *corev1beta1.Seed) string {
		if apart(seed, workers, corev1beta1.ZoneSelectionModeEnforce) {
			return "does not have any zone overlap with the shoot's worker pool zones (zone selection mode: Enforce)"
		}
		return ""
	}
}

// preferredZones drops Seeds that prefer Shoots with workers in their zones, unless there are no others.
func preferredZones(q *Question, seeds []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	workers := zonesOfWorkers(q.Shoot)
	isApart := func(seed *corev1beta1.Seed) bool { return apart(seed, workers, corev1beta1.ZoneSelectionModePrefer) }
	if !slices.ContainsFunc(seeds, func(seed *corev1beta1.Seed) bool { return !isApart(seed) }) {
		return nil
	}
	return func(seed *corev1beta1.Seed) string {
		if isApart(seed) {
			return "does not have any zone overlap with the shoot's worker pool zones (zone selection mode: Prefer)"
		}
		return ""
	}
}
