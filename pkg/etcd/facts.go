package etcd

import (
	"maps"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

// Entries of the ledger.
const (
	// entryCluster is the ID of the cluster that has been created.
	entryCluster = "cluster"
	// entryAcceptedLoss is the ID of the cluster whose data loss was accepted most recently.
	entryAcceptedLoss = "accepted-data-loss"
	// entryCompacted is the revision that the last compaction of the backups has reached.
	entryCompacted = "compacted"
)

// fact is an entry that must be written to the ledger.
type fact struct{ name, value string }

// facts returns the entries to write to the ledger before anything else happens. It is pure.
func (in Inputs) facts() []fact {
	var due []fact
	if id := in.cluster(); id != "" && !in.Ledger.Has(entryCluster, id) {
		due = append(due, fact{entryCluster, id})
	}
	id, _ := in.lostCluster(in.Etcd.Spec.Replicas)
	if id != "" && in.Etcd.Annotations[AnnotationAcceptDataLoss] == id && !in.Ledger.Has(entryAcceptedLoss, id) {
		due = append(due, fact{entryAcceptedLoss, id})
	}
	if job := in.Compactor; job != nil && jobState(job) == jobSucceeded && !in.Ledger.Has(entryCompacted, job.Annotations[annotationCompacts]) {
		due = append(due, fact{entryCompacted, job.Annotations[annotationCompacts]})
	}
	return due
}

// cluster returns the cluster ID of the member that was healthy most recently, empty if none ever was.
func (in Inputs) cluster() string {
	var last lease.Member
	for _, member := range in.served() {
		if member.Holder.ClusterID != "" && (last.Holder == nil || member.Renewed.After(last.Renewed)) {
			last = member
		}
	}
	if last.Holder == nil {
		return ""
	}
	return last.Holder.ClusterID
}

// leases returns the wanted Leases of the members, with the annotations of the operator. They are created before the
// members, so that a member without a Lease must not create a cluster.
func (in Inputs) leases() []*coordinationv1.Lease {
	names := map[string]bool{}
	for i := range in.Etcd.Spec.Replicas {
		names[MemberName(in.Etcd.Name, i)] = true
	}
	for _, member := range in.Members {
		names[member.Name] = true
	}
	annotations := map[string]string{}
	if entry, found := in.Ledger.Entry(entryCluster); found {
		annotations[lease.AnnotationClusterID] = entry.Value
	}
	if entry, found := in.Ledger.Entry(entryAcceptedLoss); found {
		annotations[lease.AnnotationAcceptedLoss] = entry.Value
	}
	for of, own := range map[string]string{AnnotationRestore: lease.AnnotationRestore, AnnotationAcceptEmpty: lease.AnnotationAcceptEmpty} {
		if value := in.Etcd.Annotations[of]; value != "" {
			annotations[own] = value
		}
	}
	if request := in.wantedSnapshot(); request != "" {
		annotations[lease.AnnotationSnapshot] = request
	}
	var wanted []*coordinationv1.Lease
	for _, name := range slices.Sorted(maps.Keys(names)) {
		wanted = append(wanted, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Etcd.Namespace, Name: name, Labels: labelsOf(in.Etcd.Name, lease.Component, name),
			Annotations: maps.Clone(annotations), OwnerReferences: ownersOf(in.Etcd),
		}})
	}
	return wanted
}

// upToDate reports whether the Lease of a member has the wanted annotations.
func upToDate(member lease.Member, wanted *coordinationv1.Lease) bool {
	return member.ClusterID == wanted.Annotations[lease.AnnotationClusterID] &&
		member.AcceptedLoss == wanted.Annotations[lease.AnnotationAcceptedLoss] &&
		(member.Restore == wanted.Annotations[lease.AnnotationRestore] || wanted.Annotations[lease.AnnotationRestore] == "") &&
		(member.Snapshot == wanted.Annotations[lease.AnnotationSnapshot] || wanted.Annotations[lease.AnnotationSnapshot] == "") &&
		(member.AcceptEmpty == wanted.Annotations[lease.AnnotationAcceptEmpty] || wanted.Annotations[lease.AnnotationAcceptEmpty] == "")
}
