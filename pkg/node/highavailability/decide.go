package highavailability

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	webhook "github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// workload is a Deployment or StatefulSet.
type workload struct {
	object   client.Object
	replicas *int32
	template *corev1.PodTemplateSpec
	// failureToleranceType is that of its Namespace.
	failureToleranceType string
}

// workloadOf returns what is looked at of a Deployment or StatefulSet; nothing of any other object.
func workloadOf(obj runtime.Object) workload {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return workload{object: obj, replicas: obj.Spec.Replicas, template: &obj.Spec.Template}
	case *appsv1.StatefulSet:
		return workload{object: obj, replicas: obj.Spec.Replicas, template: &obj.Spec.Template}
	default:
		return workload{template: &corev1.PodTemplateSpec{}}
	}
}

// fits reports whether the webhook would not change the constraint on nodes, given whether there are several nodes. With several,
// Pods have to be on different nodes if the workload or its namespace demands it; with one, nothing can demand it. Workloads with
// a single Pod have no constraint, and the webhook does not touch one that is there.
func (w workload) fits(several bool) bool {
	place := slices.IndexFunc(w.template.Spec.TopologySpreadConstraints, func(constraint corev1.TopologySpreadConstraint) bool {
		return constraint.TopologyKey == corev1.LabelHostname
	})
	if place < 0 || ptr.Deref(w.replicas, 1) <= 1 || !w.object.GetDeletionTimestamp().IsZero() {
		return true
	}
	enforced := w.template.Spec.TopologySpreadConstraints[place].WhenUnsatisfiable == corev1.DoNotSchedule
	if !several {
		return !enforced
	}
	demanded := w.failureToleranceType != "" || resourcesv1alpha1.Truthy(w.object.GetAnnotations()[webhook.AnnotationHostSpread])
	return enforced || !demanded
}
