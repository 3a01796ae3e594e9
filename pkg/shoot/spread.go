package shoot

import (
	"cmp"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// annotationSpread repeats the placement of the namespace on objects that a webhook of the resource-manager changes according to it.
const annotationSpread = "high-availability-config.resources.gardener.cloud/of-namespace"

// spread returns the placement as the value of annotationSpread; empty if it is not known.
func (p *Placement) spread() string {
	if p == nil {
		return ""
	}
	return cmp.Or(p.Tolerance, "none") + " in " + strings.Join(p.Zones, ",")
}

// markSpread annotates the objects that the webhook changes according to the placement of their namespace. Their manifests do not differ otherwise, so the
// resource-manager would not send them again when the placement changes. A dependency of ManagedResources cannot express that: see contents.
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
