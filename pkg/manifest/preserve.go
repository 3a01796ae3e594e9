package manifest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
)

// preserved are the fields of an object that are left as they are once it lives.
type preserved struct {
	// always are fields that are only sent when the object is created.
	always []fieldowner.Pattern
	// ifSet are fields that are only sent as long as the live object has none.
	ifSet []fieldowner.Pattern
}

// preservedFields returns which fields of an object are not updated, as gardener-resource-manager does it. Scaled says
// that a HorizontalPodAutoscaler decides about the replicas.
func preservedFields(gk schema.GroupKind, obj map[string]any, annotations map[string]string, scaled bool) preserved {
	var result preserved
	switch gk.Group {
	case "":
		result.always = preservedInCore(gk.Kind, obj)
	case "apps", "extensions":
		replicas := fieldowner.Replicas()
		scalable := gk.Kind == "Deployment" || gk.Kind == "StatefulSet"
		if scalable && (scaled || resourcesv1alpha1.Truthy(annotations[resourcesv1alpha1.AnnotationPreserveReplicas]) || !replicas.Has(obj)) {
			result.always = append(result.always, replicas)
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
