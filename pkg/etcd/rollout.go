package etcd

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// rollout is the next step of the rollout of the StatefulSet.
type rollout struct {
	replicas int32
	// partition is the ordinal from which members get the new template.
	partition int32
	// all replaces all members at once, because there is no quorum anyway.
	all bool
	// hold is why the StatefulSet must not change; empty if it may.
	hold string
	// wait describes what the current step waits for; empty if it is the last one.
	wait string
}

// decideRollout returns the next step of the rollout of a template with the given digest. It is pure. The StatefulSet
// controller replaces one Pod after the other, but does not check whether other members have become unhealthy.
// Therefore each step moves the partition by one member, and only if all members are healthy.
func (in Inputs) decideRollout(digest string) rollout {
	r := rollout{replicas: in.Etcd.Spec.Replicas}
	if served := in.served(); len(served) == 1 && r.replicas > 1 && served[0].TLS != in.peerTLS() {
		r.replicas = 1
		r.wait = "member " + served[0].Name + " must use the peer certificates before others join it"
	}
	set := in.StatefulSet
	if set == nil || r.replicas <= 1 || ptr.Deref(set.Spec.Replicas, 0) <= 1 {
		return r
	}
	current, total := partitionOf(set), ptr.Deref(set.Spec.Replicas, 0)
	changed := set.Annotations[annotationTemplate] != digest
	if !changed && current == 0 {
		return r
	}
	unhealthy, tail := in.unhealthy(set, total), in.unhealthyTail(set, total)
	switch {
	case unhealthy != "" && in.quorumLost(set, total):
		r.all = true
	case changed && unhealthy != "" && tail == total:
		r.hold = "the rollout starts when all members are healthy: " + unhealthy
	case changed:
		r.partition = min(tail, total-1)
		r.wait = "member " + MemberName(in.Etcd.Name, total-1) + " is replaced first"
	case unhealthy != "":
		r.partition = current
		r.wait = "the next member is replaced when all are healthy: " + unhealthy
	case set.Status.UpdatedReplicas < total-current:
		r.partition = current
		r.wait = "member " + MemberName(in.Etcd.Name, current) + " is being replaced"
	default:
		r.partition = current - 1
		if r.partition > 0 {
			r.wait = "member " + MemberName(in.Etcd.Name, r.partition) + " is replaced next"
		}
	}
	return r
}

// unhealthy returns why no other member must be replaced, empty if one may.
func (in Inputs) unhealthy(set *appsv1.StatefulSet, total int32) string {
	switch {
	case set.Status.ObservedGeneration != set.Generation:
		return "the controller of StatefulSets has not observed the last change"
	case set.Status.ReadyReplicas < total:
		return "not all Pods are ready"
	case in.ready(total) < total:
		return "not all members are healthy according to their Leases"
	case in.defragmenting() != "":
		return "member " + in.defragmenting() + " is being defragmented"
	}
	return ""
}

// quorumLost reports whether neither the ready Pods nor the Leases account for a majority of the joined members.
func (in Inputs) quorumLost(set *appsv1.StatefulSet, total int32) bool {
	needed := quorum(min(total, max(int32(len(in.served())), 1))) //nolint:gosec // a few
	return set.Status.ReadyReplicas < needed && in.ready(total) < needed
}

// unhealthyTail returns the ordinal from which no member is healthy while all members before it are. It returns total
// if there is no such ordinal. These members are replaced first: this does no harm, and the change might fix them.
func (in Inputs) unhealthyTail(set *appsv1.StatefulSet, total int32) int32 {
	first := total
	for first > 0 && in.ready(first) == in.ready(first-1) {
		first--
	}
	if first == 0 || in.ready(first) < first || set.Status.ReadyReplicas < first || in.defragmenting() != "" {
		return total
	}
	return first
}

func partitionOf(set *appsv1.StatefulSet) int32 {
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		return 0
	}
	return ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate.Partition, 0)
}

// updated returns why not all members have the current template, empty if they have.
func (in Inputs) updated(digest string) string {
	set := in.StatefulSet
	switch {
	case set == nil:
		return "the StatefulSet does not exist"
	case set.Annotations[annotationTemplate] != digest:
		return "the StatefulSet is not updated yet"
	case ptr.Deref(set.Spec.Replicas, 0) != in.Etcd.Spec.Replicas:
		return "the number of replicas of the StatefulSet is not updated yet"
	case set.Status.ObservedGeneration != set.Generation:
		return "the controller of StatefulSets has not observed the last change"
	case partitionOf(set) > 0 || set.Status.UpdatedReplicas < in.Etcd.Spec.Replicas:
		return "members are being replaced"
	case set.Status.Replicas > in.Etcd.Spec.Replicas: // Pods that terminate count
		return "members are being stopped"
	}
	return ""
}
