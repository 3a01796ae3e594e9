package controller

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// actionEvent is the action of the Events on ManagedResources.
const actionEvent = "CheckHealth"

// emitEvents writes an Event when healthy objects become unhealthy, and when they are healthy again. It writes none for
// new objects, which are expected to take a while to become healthy.
func (r *Reconciler) emitEvents(mr *resourcesv1alpha1.ManagedResource, healthy resourcesv1alpha1.Statement) {
	memory := r.memories.of(client.ObjectKeyFromObject(mr))
	before := conditionOf(mr, resourcesv1alpha1.ResourcesHealthy)
	switch {
	case before.Status == resourcesv1alpha1.ConditionTrue && healthy.Status == resourcesv1alpha1.ConditionFalse:
		memory.warned = true
		r.Recorder.Eventf(mr, nil, corev1.EventTypeWarning, healthy.Reason, actionEvent, "%s", conditiontext.ForEvent(healthy.Message))
	case memory.warned && healthy.Status == resourcesv1alpha1.ConditionTrue:
		memory.warned = false
		r.Recorder.Eventf(mr, nil, corev1.EventTypeNormal, healthy.Reason, actionEvent, "%s", healthy.Message)
	}
}
