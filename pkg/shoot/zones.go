package shoot

import (
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// zonesForZoneFailures is how many zones a control plane needs that tolerates the failure of one: etcd keeps its quorum in the other two.
const zonesForZoneFailures = 3

// Placement is the failure tolerance and the zones of a control plane, as the annotations of its namespace have them.
type Placement struct {
	// Tolerance is "node" or "zone", or empty if no failure is tolerated.
	Tolerance string
	// Zones are sorted. They are empty if the Seed had no zones when they were chosen.
	Zones []string
}

// placementOf returns the placement in the annotations of a namespace; nil if they have none.
func placementOf(annotations map[string]string) *Placement {
	tolerance, known := annotations[highavailability.AnnotationFailureTolerance]
	if !known {
		return nil
	}
	placement := &Placement{Tolerance: tolerance}
	if zones := annotations[highavailability.AnnotationZones]; zones != "" {
		placement.Zones = strings.Split(zones, ",")
	}
	return placement
}

// tolerance returns the failure tolerance that the Shoot declares.
func (in Inputs) tolerance() string {
	if !in.highlyAvailable() {
		return ""
	}
	return string(in.Shoot.Spec.ControlPlane.HighAvailability.FailureTolerance.Type)
}

// zones returns the zones that the control plane runs in, sorted: one, or three if the failure of a zone is tolerated. They are chosen once for each
// failure tolerance, as in Gardener: volumes cannot leave their zone, so the zones of a control plane stay when the Seed gets or loses zones, and when
// the failure tolerance changes, the existing zones are kept and others are added. The UID of the Shoot decides which.
func (in Inputs) zones() []string {
	var kept []string
	if in.Placement != nil {
		if in.Placement.Tolerance == in.tolerance() {
			return in.Placement.Zones
		}
		kept = in.Placement.Zones
	}
	count := 1
	if in.tolerance() == string(corev1beta1.FailureToleranceTypeZone) {
		count = zonesForZoneFailures
	}
	pool := in.Seed.Spec.Provider.Zones
	if plane := in.Shoot.Spec.ControlPlane; plane != nil && len(plane.Zones) > 0 {
		pool = plane.Zones
	}
	others := slices.DeleteFunc(slices.Clone(pool), func(zone string) bool { return slices.Contains(kept, zone) })
	return slices.Sorted(slices.Values(slices.Concat(kept, flow.Choose(in.Owner.UID, others, count-len(kept)))))
}

// unknownZones reports that the namespace lost the annotations with the zones of its volumes. Its ManagedResource restores them; until then, other zones
// must not be chosen.
func (in Inputs) unknownZones() string {
	if in.NamespaceExists && in.emitted(bundleNamespace) && in.Placement == nil {
		return "Namespace " + in.Namespace + " has lost its annotations with the zones of the control plane"
	}
	return ""
}
