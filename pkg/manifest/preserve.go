package manifest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// preserved are the fields of an object that are left as they are once it lives.
type preserved struct {
	// always are fields that are only sent when the object is created.
	always []fieldowner.Pattern
	// ifSet are fields that are only sent as long as the live object has none.
	ifSet []fieldowner.Pattern
	// fromZero are the replicas that are sent while the live object has 0; nil for none.
	fromZero any
}

// Scaling says what a HorizontalPodAutoscaler does about the replicas of an object. A greater one wins if there are several autoscalers.
type Scaling int

const (
	// NotScaled objects have no autoscaler.
	NotScaled Scaling = iota
	// ScaledFromOne objects have an autoscaler that does nothing while they have 0 replicas.
	ScaledFromOne
	// ScaledFromZero objects have an autoscaler that scales to 0 and from 0, too.
	ScaledFromZero
)

// preservedFields returns which fields of an object are not updated, as gardener-resource-manager does it, except for replicas from and to 0.
func preservedFields(gk schema.GroupKind, obj map[string]any, annotations map[string]string, scaling Scaling) preserved {
	var result preserved
	switch gk.Group {
	case "":
		result.always = preservedInCore(gk.Kind, obj)
	case "apps", "extensions":
		if fieldowner.Scalable(gk) {
			result.preserveReplicas(obj, annotations, scaling)
		}
		if gk.Kind == "StatefulSet" {
			result.always = append(result.always, fieldowner.Pattern{"spec", "volumeClaimTemplates"})
		}
	case "batch":
		if gk.Kind == "Job" {
			result.always = append(result.always, fieldowner.Pattern{"spec", "selector"})
		}
	}
	for _, restart := range fieldowner.Restarts() {
		if restart.Has(obj) {
			result.always = append(result.always, restart) // a later kubectl rollout restart counts, not the manifest's
		}
	}
	if resourcesv1alpha1.Truthy(annotations[resourcesv1alpha1.AnnotationPreserveResources]) {
		result.ifSet = fieldowner.ComputeResources()
	}
	return result
}

// preserveReplicas leaves the replicas of a workload to others where their number is not that of the manifest. An autoscaler that does not
// scale from 0 leaves a workload at 0 for good, so that the manifest decides about 0.
func (p *preserved) preserveReplicas(obj map[string]any, annotations map[string]string, scaling Scaling) {
	spec, _ := obj["spec"].(map[string]any)
	wanted, given := spec["replicas"]
	left := !given || resourcesv1alpha1.Truthy(annotations[resourcesv1alpha1.AnnotationPreserveReplicas])
	switch {
	case left || scaling == ScaledFromZero:
		p.always = append(p.always, fieldowner.Replicas())
	case scaling == ScaledFromOne && !isZero(wanted):
		p.always, p.fromZero = append(p.always, fieldowner.Replicas()), wanted
	}
}

func (m RenderOptions) scalingOf(ref object.Ref) Scaling {
	if m.Scaled == nil {
		return NotScaled
	}
	return m.Scaled(ref.Key())
}

// coversReplicas reports whether a pattern names the replicas of a workload, or a field that they are part of.
func coversReplicas(pattern fieldowner.Pattern) bool {
	return pattern.Has(map[string]any{"spec": map[string]any{"replicas": nil}})
}

// isZero reports whether a value that was decoded from JSON is the number 0.
func isZero(value any) bool { return value == int64(0) || value == float64(0) }

func preservedInCore(kind string, obj map[string]any) []fieldowner.Pattern {
	switch kind {
	case "Service":
		return preservedInService(obj)
	case "ServiceAccount":
		return []fieldowner.Pattern{{"secrets"}, {"imagePullSecrets"}}
	}
	return nil
}

// preservedInService returns what the API server allocates for a Service, unless the manifest has it go without.
func preservedInService(service map[string]any) []fieldowner.Pattern {
	spec, _ := service["spec"].(map[string]any)
	if spec["type"] == "ExternalName" {
		return nil
	}
	patterns := []fieldowner.Pattern{{"spec", "healthCheckNodePort"}}
	// Of a Service of another type it would be an address without a load balancer.
	balanced := spec["type"] == "LoadBalancer" || spec["type"] == "NodePort"
	if address := (fieldowner.Pattern{"spec", "loadBalancerIP"}); balanced && !address.Has(service) {
		patterns = append(patterns, address)
	}
	if spec["clusterIP"] != "None" {
		patterns = append(patterns, fieldowner.Pattern{"spec", "clusterIP"}, fieldowner.Pattern{"spec", "clusterIPs"})
	}
	return patterns
}
