package managedresource

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// autoscalers are the objects that a HorizontalPodAutoscaler scales, by their identity.
type autoscalers map[object.Key]bool

// readAutoscalers finds out what HorizontalPodAutoscalers scale.
func (p *pass) readAutoscalers(ctx context.Context) error {
	list := &autoscalingv2.HorizontalPodAutoscalerList{}
	if err := p.Autoscalers.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list HorizontalPodAutoscalers of the target cluster: %w", err)
	}
	p.scalers = autoscalers{}
	equivalences := manifest.NewEquivalences(p.mr.Spec.Equivalences)
	for i := range list.Items {
		if key, ok := scaledObject(&list.Items[i]); ok {
			p.scalers[equivalences.Identity(key)] = true
		}
	}
	return nil
}

// hasReplicas reports whether a document may have to leave its replicas to an autoscaler.
func hasReplicas(document manifest.Document) bool {
	return fieldowner.Replicas().Has(document.Object)
}

// scaledObject returns what an autoscaler scales. One with a malformed reference scales nothing.
func scaledObject(autoscaler *autoscalingv2.HorizontalPodAutoscaler) (object.Key, bool) {
	reference := autoscaler.Spec.ScaleTargetRef
	gv, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil || reference.Name == "" {
		return object.Key{}, false
	}
	return object.Key{Group: gv.Group, Kind: reference.Kind, Namespace: autoscaler.Namespace, Name: reference.Name}, true
}

func (p *pass) isScaled() func(object.Key) bool {
	equivalences := manifest.NewEquivalences(p.mr.Spec.Equivalences)
	return func(key object.Key) bool { return p.scalers[equivalences.Identity(key)] }
}
