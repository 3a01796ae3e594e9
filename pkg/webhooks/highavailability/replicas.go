package highavailability

import (
	"net/http"
	"strconv"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// wantedReplicas returns how many replicas an object should have, or nil if the webhook does not set them.
func wantedReplicas(object metav1.Object, failureTolerance *string) (*int32, error) {
	component := object.GetLabels()[LabelType]
	if component == "" {
		return nil, nil //nolint:nilnil // nothing to set is not an error
	}
	if text, found := object.GetAnnotations()[AnnotationReplicas]; found {
		replicas, err := strconv.ParseInt(text, 10, 32)
		if err != nil || replicas < 0 {
			return nil, admit.Refuse(http.StatusBadRequest,
				"the annotation %s is %q, but must be a whole number from 0 to 2147483647", AnnotationReplicas, text)
		}
		return ptr.To(int32(replicas)), nil
	}
	if component == typeController && failureTolerance != nil && *failureTolerance == "" {
		return ptr.To[int32](1), nil
	}
	return ptr.To[int32](2), nil
}

// replicasOf returns the replicas of a workload. It keeps zero, regardless of the annotation, because zero means
// hibernation. If an autoscaler scales the workload, it also keeps more replicas than wanted.
func replicasOf(w workload, around *surroundings) (*int32, error) {
	if w.replicas == nil || *w.replicas == 0 {
		return w.replicas, nil
	}
	wanted, err := wantedReplicas(w, around.failureTolerance)
	if err != nil || wanted == nil || around.autoscaler != nil && *w.replicas >= *wanted {
		return w.replicas, err
	}
	return wanted, nil
}

// setBounds raises the bounds of an autoscaler to the wanted replicas.
func setBounds(spec *autoscalingv2.HorizontalPodAutoscalerSpec, wanted *int32) {
	if wanted == nil || spec.MinReplicas == nil || *spec.MinReplicas == 0 {
		return
	}
	if *spec.MinReplicas < *wanted {
		spec.MinReplicas = wanted
	}
	if spec.MaxReplicas < *spec.MinReplicas {
		spec.MaxReplicas = *wanted
	}
}
