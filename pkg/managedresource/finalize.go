package managedresource

import (
	"context"
	"fmt"
	"time"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/live"
)

// waitForDeletion decides about an object that is being deleted: its finalizers are removed once the time has passed
// that it grants them by its annotation. Only positive durations count.
func waitForDeletion(observation live.Observation, now time.Time) change {
	wait := change{action: actionWait, reason: "it is being deleted"}
	if observation.FinalizeAfter == "" {
		return wait
	}
	grace, err := time.ParseDuration(observation.FinalizeAfter)
	switch {
	case err != nil || grace < 0:
		wait.reason = fmt.Sprintf("it is being deleted; its annotation %s is ignored, as it is not a positive duration such as 1h",
			resourcesv1alpha1.AnnotationFinalizeDeletionAfter)
	case grace > 0 && now.Before(observation.Deleting.Add(grace)):
		wait.due = observation.Deleting.Add(grace)
	case grace > 0:
		wait.reason, wait.finalize = "it is being deleted; its finalizers are removed after "+observation.FinalizeAfter, true
	}
	return wait
}

// finalize removes the finalizers of objects whose time is up.
func (p *pass) finalize(ctx context.Context, changes []change) {
	for i := range changes {
		if changes[i].finalize {
			changes[i].err = p.engine.Finalize(ctx, apply.Deletion{Ref: changes[i].Ref, UID: changes[i].observation.UID})
		}
	}
}
