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

// workloadOf returns the relevant fields of a Deployment or StatefulSet; an empty workload for any other object.
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

// fits reports whether the webhook would leave the constraint on nodes unchanged, given whether there are several
// nodes. With several nodes, Pods must be on different nodes if the workload or its namespace requires it. With one
// node, this cannot be required. Workloads with a single Pod need no constraint, and the webhook does not change an
// existing one.
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
