package shoot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/shoot/restoredgarden"
)

// awaitPerson reports that nothing happens until a person has decided.
func (p *pass) awaitPerson(ctx context.Context, why string) error {
	status, now := *p.shoot.Status.DeepCopy(), metav1.NewTime(p.Wake.Now)
	before := ptr.Deref(status.LastOperation, corev1beta1.LastOperation{})
	next := corev1beta1.LastOperation{
		Type: operationType(p.shoot), State: corev1beta1.LastOperationStatePending, Progress: before.Progress, LastUpdateTime: before.LastUpdateTime,
		Description: flow.UpperFirst(why) + ".",
	}
	if next == before {
		return nil
	}
	next.LastUpdateTime, status.LastOperation = now, &next
	p.events.Eventf(p.shoot, nil, corev1.EventTypeWarning, eventEarlierState, actionReconcile, "%s", next.Description)
	return p.write(ctx, p.shoot, status)
}

// remember records in the Seed that a control plane has gone, for the case that the garden is restored to a state in which it is here.
func (r *reconciler) remember(ctx context.Context, shoot *corev1beta1.Shoot, reason restoredgarden.Reason) error {
	err := r.records.Set(ctx, shoot.UID, &restoredgarden.Record{Reason: reason, Generation: shoot.Generation})
	if err != nil {
		return fmt.Errorf("end the operation of Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	return nil
}
