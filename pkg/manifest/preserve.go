package manifest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// preserved are the fields that are not changed in a live object.
type preserved struct {
	// always are fields that are only sent to create the object.
	always []fieldowner.Pattern
	// ifSet are fields that are only sent as long as the live object does not have them.
	ifSet []fieldowner.Pattern
	// fromZero are the replicas that are sent while the live object has 0. It is nil if they are not.
	fromZero any
}

// Scaling is how a HorizontalPodAutoscaler scales an object. If there are several autoscalers, the greatest value
// applies.
type Scaling int

const (
	// NotScaled objects do not have an autoscaler.
	NotScaled Scaling = iota
	// ScaledFromOne objects have an autoscaler that is inactive while they have 0 replicas.
	ScaledFromOne
	// ScaledFromZero objects have an autoscaler that also scales to and from 0.
	ScaledFromZero
)

// preservedFields returns the fields of an object that are not updated. They are the same as in
// gardener-resource-manager, except for scaling from and to 0 replicas.
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
			result.always = append(result.always, restart) // a later kubectl rollout restart takes precedence over the manifest
		}
	}
	if resourcesv1alpha1.Truthy(annotations[resourcesv1alpha1.AnnotationPreserveResources]) {
		result.ifSet = fieldowner.ComputeResources()
	}
	return result
}

// preserveReplicas preserves the live replicas of a workload if the manifest does not determine their number. An
// autoscaler that does not scale from 0 leaves a workload at 0 permanently. In this case, the manifest determines
// scaling from and to 0.
func (p *preserved) preserveReplicas(obj map[string]any, annotations map[string]string, scaling Scaling) {
	spec, _ := obj["spec"].(map[string]any)
	wanted, specified := spec["replicas"]
	preserve := !specified || resourcesv1alpha1.Truthy(annotations[resourcesv1alpha1.AnnotationPreserveReplicas])
	switch {
	case preserve || scaling == ScaledFromZero:
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

// coversReplicas reports whether a pattern matches the replicas of a workload, or a field that contains them.
func coversReplicas(pattern fieldowner.Pattern) bool {
	return pattern.Has(map[string]any{"spec": map[string]any{"replicas": nil}})
}

// isZero reports whether a decoded JSON value is the number 0.
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

// preservedInService returns the fields that the API server allocates for a Service, except those that the manifest
// excludes.
func preservedInService(service map[string]any) []fieldowner.Pattern {
	spec, _ := service["spec"].(map[string]any)
	if spec["type"] == "ExternalName" {
		return nil
	}
	patterns := []fieldowner.Pattern{{"spec", "healthCheckNodePort"}}
	// In a Service of another type, it would be an address without a load balancer.
	balanced := spec["type"] == "LoadBalancer" || spec["type"] == "NodePort"
	if address := (fieldowner.Pattern{"spec", "loadBalancerIP"}); balanced && !address.Has(service) {
		patterns = append(patterns, address)
	}
	if spec["clusterIP"] != "None" {
		patterns = append(patterns, fieldowner.Pattern{"spec", "clusterIP"}, fieldowner.Pattern{"spec", "clusterIPs"})
	}
	return patterns
}
