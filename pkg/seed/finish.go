package seed

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/breakglass"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backupbucket"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backupentry"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/bastion"
	"github.com/trellis-k8s/trellis/pkg/inventory"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// removedAfter is how long to wait before checking whether the objects of the resource-manager are deleted.
const removedAfter = time.Second

// finish executes the parts of a deletion that are not in the plan, and removes the finalizer of the Seed when
// everything is deleted.
func (p *pass) finish(ctx context.Context) error {
	r, seed, in := p.reconciler, p.seed, p.in
	if in.Users == nil || len(*in.Users) > 0 {
		why, _ := in.inUse()
		if why != r.lastRefusal {
			r.events.Eventf(seed, nil, corev1.EventTypeWarning, eventInUse, actionDelete, "%s", why)
			r.lastRefusal = why
		}
		return nil
	}
	if in.Bucket != nil {
		if in.Bucket.DeletionTimestamp != nil {
			return nil // the watch reports its deletion
		}
		err := r.garden.Delete(ctx, in.Bucket, client.Preconditions{UID: &in.Bucket.UID})
		return client.IgnoreNotFound(err)
	}
	if len(in.Emitted) > 0 || len(p.Plan.Waits) > 0 {
		return nil // the watches report their deletion
	}
	left, err := flow.Remaining(ctx, r.uncached, in.Owner, in.Namespace)
	if err != nil || len(left) > 0 {
		return err
	}
	// The Shoots, buckets, entries and Bastions of the Seed no longer exist at this point.
	for _, name := range []string{FlowName, inventory.FlowShoot, backupbucket.FlowName, backupentry.FlowName, bastion.FlowName} {
		if err := flow.DeleteManifests(ctx, r.uncached, r.seed, in.Namespace, client.MatchingLabels{flow.LabelFlow: name}); err != nil {
			return err
		}
	}
	nothing := func(string) bool { return false }
	if err := r.secrets.CleanUp(ctx, secrets.Wanted{}, nil, nothing); err != nil {
		return err
	}
	if gone, err := r.removeResourceManager(ctx, in); err != nil || !gone {
		p.Wake.In(removedAfter)
		return err
	}
	return r.patch(ctx, seed, func() { controllerutil.RemoveFinalizer(seed, constants.GardenerName) })
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
