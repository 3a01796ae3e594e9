package shoot

import (
	"cmp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// annotationSpread is an annotation of objects that the resource-manager's high availability webhook changes. Its value
// describes the annotations of the namespace.
const annotationSpread = "high-availability-config.resources.gardener.cloud/of-namespace"

// spreadOf describes the failure tolerance and zones in the annotations of a namespace. It returns an empty string if there are none.
func spreadOf(annotations map[string]string) string {
	tolerance, found := annotations[highavailability.AnnotationFailureTolerance]
	if !found {
		return ""
	}
	return cmp.Or(tolerance, "none") + " in " + annotations[highavailability.AnnotationZones]
}

// spread returns the description of the annotations that the namespace should have.
func (in Inputs) spread() string {
	tolerance := ""
	if in.highlyAvailable() {
		tolerance = string(in.Shoot.Spec.ControlPlane.HighAvailability.FailureTolerance.Type)
	}
	return spreadOf(map[string]string{
		highavailability.AnnotationFailureTolerance: tolerance,
		highavailability.AnnotationZones:            strings.Join(slices.Sorted(slices.Values(in.zones())), ","),
	})
}

// markSpread annotates the objects that the webhook changes depending on the annotations of their namespace. Without the
// mark, their manifests would not change with these annotations, and they would not be sent again. A dependency between
// ManagedResources cannot express this: see contents.
func (in Inputs) markSpread(objects []client.Object) {
	for _, object := range objects {
		if in.Spread == "" || object.GetLabels()[highavailability.LabelType] == "" {
			continue
		}
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationSpread] = in.Spread
		object.SetAnnotations(annotations)
	}
}
