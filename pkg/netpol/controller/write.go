package controller

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// concurrentWrites is how many policies of one Service are written at a time.
const concurrentWrites = 8

// write writes all changes. One that fails does not stop the others; the errors are in the order of the changes.
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
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if one.present != nil {
		r.fights.Observe(one.key(), digestOf(one.desired), r.Clock.Now())
	} else {
		r.fights.Forget(one.key())
	}
	var what string
	var err error
	switch {
	case one.desired == nil:
		what, err = "deleted", r.delete(ctx, one.present)
	case one.present == nil:
		what, err = "created", r.apply(ctx, one.desired)
	default:
		what, err = "updated", r.apply(ctx, one.desired)
	}
	if err != nil {
		r.Metrics.wrote("failed")
		return fmt.Errorf("NetworkPolicy %s: %w", one.key(), err)
	}
	r.Metrics.wrote(what)
	log.FromContext(ctx).V(1).Info("Wrote a NetworkPolicy", "change", what, "policy", one.key().String())
	return nil
}

// delete deletes a policy if it still is as it was seen.
func (r *Reconciler) delete(ctx context.Context, present *networkingv1.NetworkPolicy) error {
	err := r.Policies.NetworkPolicies(present.Namespace).Delete(ctx, present.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &present.UID, ResourceVersion: &present.ResourceVersion},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// apply applies a policy. What others own of its spec is taken over if it is in the way.
func (r *Reconciler) apply(ctx context.Context, desired *networkingv1.NetworkPolicy) error {
	live, asDesired, err := fieldowner.Imposition[*networkingv1.NetworkPolicy]{
		Apply: func() (*networkingv1.NetworkPolicy, error) { return r.applyOnce(ctx, desired) },
		Patch: func(live *networkingv1.NetworkPolicy, patch []byte) error {
			_, err := r.Policies.NetworkPolicies(live.Namespace).Patch(ctx, live.Name, types.JSONPatchType, patch,
				metav1.PatchOptions{FieldManager: resourcesv1alpha1.FieldManager})
			return err
		},
		AsDesired: func(live *networkingv1.NetworkPolicy) bool { return netpol.Digest(live) == netpol.Digest(desired) },
		Keep:      []fieldowner.Pattern{{"metadata"}},
	}.Impose()
	switch {
	case isGone(err):
		return nil // the namespace is terminating or deleted; its own event follows
	case err != nil:
		return err
	case !asDesired:
		return errAltered
	}
	return r.recordWrite(ctx, live)
}

func (r *Reconciler) applyOnce(ctx context.Context, desired *networkingv1.NetworkPolicy) (*networkingv1.NetworkPolicy, error) {
	body := desired.DeepCopy()
	body.TypeMeta = metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return r.Policies.NetworkPolicies(desired.Namespace).Patch(ctx, desired.Name, types.ApplyPatchType, data, metav1.PatchOptions{
		FieldManager: resourcesv1alpha1.FieldManager, Force: ptr.To(true),
	})
}

// recordWrite keeps a policy as written until the watch shows it.
func (r *Reconciler) recordWrite(ctx context.Context, live *networkingv1.NetworkPolicy) error {
	reduced, err := reducePolicy(live)
	if err != nil {
		return err
	}
	if policy, ok := reduced.(*networkingv1.NetworkPolicy); ok {
		r.writes.record(policy, r.Clock.Now(), func() *networkingv1.NetworkPolicy {
			shown := &networkingv1.NetworkPolicy{}
			if r.Cache.Get(ctx, keyOf(policy), shown) != nil {
				return nil
			}
			return shown
		})
	}
	return nil
}

// isGone reports whether a write failed because the namespace is terminating or deleted.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
