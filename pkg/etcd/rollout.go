package etcd

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// rollout is how far the StatefulSet may go now.
type rollout struct {
	replicas int32
	// partition is the ordinal from which on members get the new template.
	partition int32
	// all has the members replaced without regard for each other: no majority answers anyway.
	all bool
	// hold says why the StatefulSet has to stay as it is; empty if it has not.
	hold string
	// wait says what the present step waits for; empty if it is the last one.
	wait string
}

// decideRollout returns how far the StatefulSet may go to a template with a digest. It is pure. The controller of StatefulSets replaces one Pod
// after the other, but it does not look at members that have become unhealthy meanwhile. So each step allows one member more, when all members
// are healthy.
func (in Inputs) decideRollout(digest string) rollout {
	r := rollout{replicas: in.Etcd.Spec.Replicas}
	if served := in.served(); len(served) == 1 && r.replicas > 1 && served[0].TLS != in.peerTLS() {
		r.replicas = 1
		r.wait = "member " + served[0].Name + " has to use the certificates for peers before others join it"
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
		r.hold = "the members are replaced when all of them are healthy: " + unhealthy
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

// unhealthy says why a further member must not be replaced; empty if it may.
func (in Inputs) unhealthy(set *appsv1.StatefulSet, total int32) string {
	switch {
	case set.Status.ObservedGeneration != set.Generation:
		return "the controller of StatefulSets has not observed the last change"
	case set.Status.ReadyReplicas < total:
		return "not all Pods are ready"
	case in.ready(total) < total:
		return "not all members report that they are healthy"
	case in.defragmenting() != "":
		return "member " + in.defragmenting() + " is being defragmented"
	}
	return ""
}

// quorumLost reports whether neither Pods nor Leases know of a majority of the members that have joined.
func (in Inputs) quorumLost(set *appsv1.StatefulSet, total int32) bool {
	needed := quorum(min(total, max(int32(len(in.served())), 1))) //nolint:gosec // a few
	return set.Status.ReadyReplicas < needed && in.ready(total) < needed
}

// unhealthyTail returns the ordinal from which on no member is healthy, while all before are; the number of members if that is not so. These
// members are replaced first, which harms nothing, and a change may be what they need.
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

// updated says why not all members have the wanted template; empty if they have.
func (in Inputs) updated(digest string) string {
	set := in.StatefulSet
	switch {
	case set == nil:
		return "there is no StatefulSet"
	case set.Annotations[annotationTemplate] != digest:
		return "the StatefulSet has not got the change yet"
	case ptr.Deref(set.Spec.Replicas, 0) != in.Etcd.Spec.Replicas:
		return "the StatefulSet has not got the number of replicas yet"
	case set.Status.ObservedGeneration != set.Generation:
		return "the controller of StatefulSets has not observed the last change"
	case partitionOf(set) > 0 || set.Status.UpdatedReplicas < in.Etcd.Spec.Replicas:
		return "members are being replaced"
	}
	return ""
}
