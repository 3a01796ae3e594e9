package shoot

import (
	"context"
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/workerpool"
)

// pendingInPlace returns why a rotation of credentials that nodes have must wait: machines of worker pools have not been updated in place yet. It
// is computed from what the Worker reports, because status.inPlaceUpdates may not be written yet.
func (r *reconciler) pendingInPlace(ctx context.Context, in Inputs) ([]string, error) {
	if !in.rotatesInPlace() {
		return nil, nil
	}
	updated, err := r.extensions.UpdatedInPlace(ctx, in.Shoot)
	if err != nil {
		return nil, err
	}
	pending, err := workerpool.Pending(in.Shoot, updated)
	if err != nil || pending == nil {
		return nil, err
	}
	pools := slices.Concat(pending.AutoInPlaceUpdate, pending.ManualInPlaceUpdate)
	return []string{"worker pools wait for their update in place: " + strings.Join(pools, ", ")}, nil
}

// rotatesInPlace reports whether a rotation is being rolled out to machines that are updated in place.
func (in Inputs) rotatesInPlace() bool {
	return workerpool.HasInPlace(in.Shoot) && slices.ContainsFunc(cycles(in.rotation()), func(c rotation.Cycle) bool {
		return c.Pending != nil && *c.Phase == corev1beta1.RotationPreparing
	})
}
