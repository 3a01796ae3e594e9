package controller

import (
	"context"

	"golang.org/x/sync/errgroup"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/ownedobject"
)

// concurrentWrites is the number of policies of one Service that are written concurrently.
const concurrentWrites = 8

// write writes all changes. A failed write does not stop the others. The errors are in the order of the changes.
func (r *Reconciler) write(ctx context.Context, todo todo) []error {
	errs := make([]error, len(todo.changes))
	var group errgroup.Group
	group.SetLimit(concurrentWrites)
	for i, one := range todo.changes {
		group.Go(func() error {
			errs[i] = r.writeOne(ctx, one)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	var failures []error
	for _, err := range errs {
		if err != nil {
			failures = append(failures, err)
		}
	}
	return failures
}

func (r *Reconciler) writeOne(ctx context.Context, one change) error {
	var present *metav1.ObjectMeta
	if one.present != nil {
		present = &one.present.ObjectMeta
	}
	desired := one.desired
	if desired != nil {
		desired = desired.DeepCopy()
		desired.TypeMeta = metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"}
	}
	return ownedobject.Writer[*networkingv1.NetworkPolicy]{
		Kind: "NetworkPolicy",
		Client: func(namespace string) ownedobject.Client[*networkingv1.NetworkPolicy] {
			return r.Policies.NetworkPolicies(namespace)
		},
		Delete: func(ctx context.Context, key types.NamespacedName, options metav1.DeleteOptions) error {
			return r.Policies.NetworkPolicies(key.Namespace).Delete(ctx, key.Name, options)
		},
		Digest: netpol.Digest, Keep: []fieldowner.Pattern{{"metadata"}}, Label: netpol.LabelServiceName, Timeout: requestTimeout,
		Fights: r.fights, Clock: r.Clock, Count: func(result string) { r.Metrics.changes.Inc(result) }, Applied: r.recordWrite,
	}.Write(ctx, one.key(), desired, present)
}

// recordWrite remembers a written policy until the watch shows it.
func (r *Reconciler) recordWrite(ctx context.Context, live *networkingv1.NetworkPolicy) {
	policy := reducePolicy(live)
	r.writes.record(policy, r.Clock.Now(), func() *networkingv1.NetworkPolicy {
		shown := &networkingv1.NetworkPolicy{}
		if r.Cache.Get(ctx, keyOf(policy), shown) != nil {
			return nil
		}
		return shown
	})
}
