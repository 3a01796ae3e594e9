package etcd

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// Inputs are all inputs of the flow.
type Inputs struct {
	Etcd *druidv1alpha1.Etcd
	// Class is the class of the resource-manager, and Image the default image of members.
	Class, Image string
	// Version is the version of the program, and EmittedVersion the version that computed the objects of the emitted bundle;
	// empty if none has.
	Version, EmittedVersion string
	// Emitted are the objects of the emitted bundle. They are only read while an earlier operation is being rolled out.
	Emitted []*unstructured.Unstructured
	// AutoReconcile applies each change of the spec immediately.
	AutoReconcile bool
	// StatefulSet is the existing StatefulSet, nil if there is none.
	StatefulSet *appsv1.StatefulSet
	// Members are the contents of the Leases, sorted by name.
	Members []lease.Member
	// StoreSecret is what is used of the Secret of the store. FullSnapshot and DeltaSnapshot are the contents of the Leases of snapshots.
	StoreSecret                 StoreSecret
	FullSnapshot, DeltaSnapshot lease.Snapshot
	// Compactor is the Job that compacts the backups, nil if there is none. Compacting is set if it was emitted.
	Compactor  *batchv1.Job
	Compacting bool
	// Ledger records irreversible events.
	Ledger *flow.Ledger
	Now    time.Time

	snapshotLeaseExists map[string]bool
}

// OwnerOf returns an Etcd as an owner of emitted objects.
func OwnerOf(etcd *druidv1alpha1.Etcd) flow.Owner {
	return flow.Owner{Flow: FlowName, UID: etcd.UID, Namespace: etcd.Namespace, Name: etcd.Name}
}

// BundleKey returns the name of the ManagedResource of an Etcd.
func BundleKey(etcd types.NamespacedName) flow.Key {
	return flow.Key{Namespace: etcd.Namespace, Name: etcd.Name + "-members"}
}

// LedgerKey returns the name of the Secret with the ledger of an Etcd.
func LedgerKey(etcd types.NamespacedName) flow.Key {
	return flow.Key{Namespace: etcd.Namespace, Name: "etcd-ledger-" + etcd.Name}
}

func keyOf(etcd *druidv1alpha1.Etcd) types.NamespacedName {
	return types.NamespacedName{Namespace: etcd.Namespace, Name: etcd.Name}
}

// deleting reports whether the Etcd is being deleted.
func (in Inputs) deleting() bool { return in.Etcd.DeletionTimestamp != nil }

// requested reports whether the spec must be applied because an annotation requests it or because it was never applied.
func requested(etcd *druidv1alpha1.Etcd) bool {
	return etcd.Annotations[AnnotationOperation] == OperationReconcile ||
		etcd.Annotations[AnnotationDruidOperation] == OperationReconcile ||
		etcd.Status.ObservedGeneration == nil
}

func suspended(etcd *druidv1alpha1.Etcd) bool {
	_, found := etcd.Annotations[AnnotationSuspend]
	return found
}

// notDue returns why the spec is not applied now, empty if it is. A rollout in progress continues in any case: see goOn.
func (in Inputs) notDue() string {
	etcd := in.Etcd
	switch {
	case suspended(etcd):
		return "reconciliation is suspended by the annotation " + AnnotationSuspend
	case requested(etcd) || in.AutoReconcile:
		return ""
	case *etcd.Status.ObservedGeneration != etcd.Generation:
		return "the spec has changed: annotate the Etcd with " + AnnotationOperation + "=" + OperationReconcile + " to apply it"
	case in.EmittedVersion != "" && in.EmittedVersion != in.Version:
		return "the version of the operator has changed: its changes are applied with the next operation"
	}
	return ""
}

// served returns the members that have belonged to the current cluster.
func (in Inputs) served() []lease.Member {
	return slices.DeleteFunc(slices.Clone(in.Members), func(member lease.Member) bool {
		return member.Holder == nil || member.Holder.ClusterID == member.AcceptedLoss && member.AcceptedLoss != ""
	})
}

func (in Inputs) peerTLS() bool { return in.Etcd.Spec.ETCD.PeerURLTLS != nil }

// image returns the image of members.
func (in Inputs) image() string {
	if in.Etcd.Spec.ETCD.Image != nil {
		return cmp.Or(*in.Etcd.Spec.ETCD.Image, in.Image)
	}
	return in.Image
}
