package shoot

import (
	"cmp"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

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
