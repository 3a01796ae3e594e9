package shoot

import (
	"cmp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// zonesForZoneFailures is the number of zones of a control plane that tolerates the failure of one: etcd keeps its quorum in the
// other two.
const zonesForZoneFailures = 3

// Placement is the failure tolerance and the zones of a control plane, as stored in the annotations of its namespace.
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

// tolerance returns the declared failure tolerance: "node" or "zone", or empty if none is declared.
func (in Inputs) tolerance() string {
	if !in.highlyAvailable() {
		return ""
	}
	return string(in.Shoot.Spec.ControlPlane.HighAvailability.FailureTolerance.Type)
}

// zones returns the zones of the control plane, sorted: three if it must tolerate the failure of a zone, otherwise one. Volumes
// cannot leave their zone. The zones are therefore chosen once, and are kept when zones are added to the Seed or removed from
// it. If the failure tolerance changes, zones are added (Gardener: "computed when the tolerance annotation is new or changes").
// The choice depends only on the UID of the Shoot.
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

// unknownZones returns a reason if the annotations with the zones of the volumes were removed from the namespace. No other
// zones are chosen until its ManagedResource has restored them.
func (in Inputs) unknownZones() string {
	if in.NamespaceExists && in.emitted(bundleNamespace) && in.Placement == nil {
		return "Namespace " + in.Namespace + " has lost its annotations with the zones of the control plane"
	}
	return ""
}

// annotationSpread is an annotation of objects that the resource-manager's high availability webhook changes. Its value
// describes the placement in the annotations of the namespace.
const annotationSpread = "high-availability-config.resources.gardener.cloud/of-namespace"

// spread returns the value of annotationSpread. It is empty if the placement is not known.
func (p *Placement) spread() string {
	if p == nil {
		return ""
	}
	return cmp.Or(p.Tolerance, "none") + " in " + strings.Join(p.Zones, ",")
}

// markSpread annotates the objects that the webhook changes depending on the placement of their namespace. Without the
// mark, their manifests would not change with the placement, and they would not be sent again. A dependency between
// ManagedResources cannot express this: see contents.
func (in Inputs) markSpread(objects []client.Object) {
	if in.Placement == nil {
		return
	}
	for _, object := range objects {
		if object.GetLabels()[highavailability.LabelType] == "" {
			continue
		}
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationSpread] = in.Placement.spread()
		object.SetAnnotations(annotations)
	}
}
