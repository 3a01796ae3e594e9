package shoot

import (
	"cmp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// annotationSpread is what the namespace says about failures and zones, on objects that the resource-manager's webhook changes by that.
const annotationSpread = "high-availability-config.resources.gardener.cloud/of-namespace"

// spreadOf returns what the annotations of a namespace say about failures and zones; empty if they say nothing.
func spreadOf(annotations map[string]string) string {
	tolerance, said := annotations[highavailability.AnnotationFailureTolerance]
	if !said {
		return ""
	}
	return cmp.Or(tolerance, "none") + " in " + annotations[highavailability.AnnotationZones]
}

// spread returns what the annotations of the namespace are to say.
func (in Inputs) spread() string {
	tolerance := ""
	if in.highlyAvailable() {
		tolerance = string(in.Shoot.Spec.ControlPlane.HighAvailability.FailureTolerance.Type)
	}
	return spreadOf(map[string]string{
		highavailability.AnnotationFailureTolerance: tolerance, highavailability.AnnotationZones: strings.Join(slices.Sorted(slices.Values(in.zones())), ","),
	})
}

// markSpread annotates the objects that the webhook changes by the annotations of their namespace. Their manifests are the same otherwise, and would not
// be sent again once the namespace says something else. That cannot be a dependency of ManagedResources: see contents.
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
