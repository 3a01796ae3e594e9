package managedresource

import (
	"fmt"
	"time"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/live"
)

// finalizeAt returns when the finalizers of the objects of a ManagedResource that is being deleted are removed,
// according to the annotation of the ManagedResource. The time is zero if they are not removed. If the annotation is
// invalid, it is ignored and finalizeAt returns an error.
func finalizeAt(mr *resourcesv1alpha1.ManagedResource) (time.Time, error) {
	text := mr.Annotations[resourcesv1alpha1.AnnotationFinalizeDeletionAfter]
	if text == "" || mr.DeletionTimestamp == nil {
		return time.Time{}, nil
	}
	grace, err := graceOf(text)
	if err != nil {
		return time.Time{}, err
	}
	return mr.DeletionTimestamp.Add(grace), nil
}

// timeIsUp reports whether the finalizers of the objects of a ManagedResource that is being deleted have to be removed.
func timeIsUp(mr *resourcesv1alpha1.ManagedResource, now time.Time) bool {
	due, err := finalizeAt(mr)
	return err == nil && !due.IsZero() && !now.Before(due)
}

// graceOf parses the annotation finalize-deletion-after, which must be a positive duration.
func graceOf(text string) (time.Duration, error) {
	grace, err := time.ParseDuration(text)
	if err != nil || grace <= 0 {
		return 0, fmt.Errorf("annotation %s is ignored, as it is not a positive duration such as 1h",
			resourcesv1alpha1.AnnotationFinalizeDeletionAfter)
	}
	return grace, nil
}

// waitForDeletion decides what to do with an object that is being deleted. Its finalizers are removed after the time in
// its annotation, or at the time in the annotation of the ManagedResource that is being deleted, whichever is earlier.
func waitForDeletion(observation live.Observation, finalizeAll, now time.Time) change {
	wait := change{action: actionWait, reason: "it is being deleted"}
	due, because := finalizeAll, "after the time that its ManagedResource sets"
	if observation.FinalizeAfter != "" {
		switch grace, err := time.ParseDuration(observation.FinalizeAfter); {
		case err != nil || grace < 0:
			wait.reason = fmt.Sprintf("it is being deleted; its annotation %s is ignored, as it is not a positive duration such as 1h",
				resourcesv1alpha1.AnnotationFinalizeDeletionAfter)
		case grace > 0 && (due.IsZero() || observation.Deleting.Add(grace).Before(due)):
			due, because = observation.Deleting.Add(grace), "after "+observation.FinalizeAfter
		}
	}
	switch {
	case due.IsZero():
	case now.Before(due):
		wait.due = due
	default:
		wait.reason, wait.finalize = "it is being deleted; its finalizers are removed "+because, true
	}
	return wait
}
