package controller

import (
	"cmp"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// change is a policy to write. One of the fields may be nil.
type change struct {
	// desired is nil if the policy must be deleted.
	desired *networkingv1.NetworkPolicy
	// present is the reduced policy in the cluster; nil if it does not exist.
	present *networkingv1.NetworkPolicy
}

func (c change) key() types.NamespacedName {
	if c.desired != nil {
		return keyOf(c.desired)
	}
	return keyOf(c.present)
}

// todo is the pending work for a Service.
type todo struct {
	changes []change
	// wait is the delay of changes that another client keeps reverting; 0 for none.
	wait time.Duration
	// unseen is set if the watch has not shown all previous writes. An event may have replaced the second reconcile that
	// was scheduled after them, so another one is scheduled.
	unseen bool
}

// again returns the delay until the next reconcile of the Service; 0 for never.
func (t todo) again() time.Duration {
	switch written := t.unseen || len(t.changes) > 0; {
	case t.wait > 0 && written:
		return min(t.wait, recheckDelay)
	case written:
		return recheckDelay
	}
	return t.wait
}

// differences returns the writes that lead to exactly the desired policies, with deletions last.
func differences(result *netpol.Result, existing map[types.NamespacedName]*networkingv1.NetworkPolicy) []change {
	var changes, deletions []change
	desired := make(map[types.NamespacedName]bool, len(result.Policies))
	for _, policy := range result.Policies {
		key := keyOf(policy)
		desired[key] = true
		if present := existing[key]; present == nil || present.Annotations[keptDigest] != netpol.Digest(policy) {
			changes = append(changes, change{desired: policy, present: present})
		}
	}
	for key, present := range existing {
		if !desired[key] && !result.Keeps(key.Namespace, key.Name) && present.DeletionTimestamp == nil {
			deletions = append(deletions, change{present: present})
		}
	}
	slices.SortFunc(deletions, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.present.Namespace, b.present.Namespace), cmp.Compare(a.present.Name, b.present.Name))
	})
	return append(changes, deletions...)
}

// plan returns the changes to write now.
func (r *Reconciler) plan(result *netpol.Result, existing map[types.NamespacedName]*networkingv1.NetworkPolicy) todo {
	var plan todo
	now := r.Clock.Now()
	for _, one := range differences(result, existing) {
		wait := r.fights.Wait(one.key(), digestOf(one.desired), now)
		if wait == 0 {
			plan.changes = append(plan.changes, one)
		} else if plan.wait == 0 || wait < plan.wait {
			plan.wait = wait
		}
	}
	return plan
}

// digestOf returns the digest of the desired policy; empty if the policy must be deleted.
func digestOf(desired *networkingv1.NetworkPolicy) string {
	if desired == nil {
		return ""
	}
	return netpol.Digest(desired)
}
