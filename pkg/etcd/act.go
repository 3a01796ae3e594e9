package etcd

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// mayDefragment returns why no member may be defragmented now, empty if one may.
func (r *Reconciler) mayDefragment(ctx context.Context, owner flow.Owner, _ flow.Task) (string, error) {
	in, err := r.readMembers(ctx, owner)
	if err != nil {
		return "", err
	}
	if in.ready(in.Etcd.Spec.Replicas) < in.Etcd.Spec.Replicas {
		return "defragmentation starts when all members are healthy", nil
	}
	return "", nil
}

// readMembers reads an Etcd and the Leases of its members from the API server.
func (r *Reconciler) readMembers(ctx context.Context, owner flow.Owner) (Inputs, error) {
	key := types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}
	in := Inputs{Etcd: &druidv1alpha1.Etcd{}, Now: r.Options.Clock.Now()}
	if err := r.Uncached.Get(ctx, key, in.Etcd); err != nil {
		return in, fmt.Errorf("read Etcd %s: %w", key, err)
	}
	var err error
	in.Members, err = listMembers(ctx, r.Uncached, key)
	return in, err
}

// defragment requests the defragmentation of one member after the other by annotating its Lease.
func (r *Reconciler) defragment(ctx context.Context, owner flow.Owner, task flow.Task) (flow.Outcome, error) {
	in, err := r.readMembers(ctx, owner)
	if err != nil {
		return flow.Outcome{}, err
	}
	members := in.upTo(in.Etcd.Spec.Replicas)
	next, busy := nextToDefragment(members, task.Value)
	if next == "" {
		r.reportDefragmentation(in.Etcd, members)
		return flow.Outcome{Done: true}, nil
	}
	if !busy {
		object := &coordinationv1.Lease{}
		object.Namespace, object.Name = owner.Namespace, next
		if err := r.annotateLease(ctx, object, map[string]string{lease.AnnotationDefragment: task.Value}); err != nil {
			return flow.Outcome{}, err
		}
	}
	return flow.Outcome{Progress: "member " + next + " is being defragmented"}, nil
}

func (r *Reconciler) reportDefragmentation(etcd *druidv1alpha1.Etcd, members []lease.Member) {
	failed := false
	for _, member := range members {
		if member.DefragmentError != "" {
			failed = true
			r.Recorder.Eventf(etcd, nil, corev1.EventTypeWarning, eventDefragmentFailed, actionDefragment,
				"Member %s: %s", member.Name, member.DefragmentError)
		}
	}
	if !failed {
		r.Recorder.Eventf(etcd, nil, corev1.EventTypeNormal, eventDefragmented, actionDefragment,
			"All %d members are defragmented", len(members))
	}
}
