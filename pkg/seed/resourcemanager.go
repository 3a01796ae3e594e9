package seed

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow/breakglass"
)

// removedAfter is how long to wait before checking whether the objects of the resource-manager are deleted.
const removedAfter = time.Second

// breakGlass returns the options with which gardenlet applies the resource-manager of the seed if it is down.
func breakGlass(namespace string) breakglass.Options {
	return breakglass.Options{
		Namespace: namespace, Lease: resourcemanager.Name, Deployment: resourcemanager.Name, ManagedResource: bundleResourceManager,
		Flow: FlowName, FieldManager: fieldManager, StaleAfter: breakglass.DefaultStaleAfter,
	}
}

// removeResourceManager deletes the objects of the resource-manager, which does not delete them itself, and reports
// whether they no longer exist. If ManagedResources of other clients exist, it is kept.
func (r *reconciler) removeResourceManager(ctx context.Context, in Inputs) (gone bool, err error) {
	if in.operatorRuns() {
		return true, nil // the flow did not deploy it
	}
	objects, err := in.resourceManager()
	if err != nil {
		return false, err
	}
	left, err := breakglass.Remove(ctx, r.seed, r.uncached, objects)
	if errors.Is(err, breakglass.ErrInUse) {
		r.events.Eventf(in.Seed, nil, corev1.EventTypeWarning, eventKept, actionDelete, "the resource-manager is kept in the seed: %s", err)
		return true, nil
	}
	if len(left) > 0 {
		log.FromContext(ctx).Info("The resource-manager is being deleted", "left", left)
	}
	return len(left) == 0, err
}
