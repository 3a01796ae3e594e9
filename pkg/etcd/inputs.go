package etcd

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// Inputs are all that the flow reads.
type Inputs struct {
	Etcd *druidv1alpha1.Etcd
	// Class is that of the resource-manager, and Image that of members.
	Class, Image string
	// Version is that of the program, and EmittedVersion the one that has emitted the bundle last; empty if none has.
	Version, EmittedVersion string
	// AutoReconcile has each change of the spec carried out at once.
	AutoReconcile bool
	// StatefulSet is the one that lives; nil if there is none.
	StatefulSet *appsv1.StatefulSet
	// Members are what the Leases say, in the order of their names.
	Members []lease.Member
	// Ledger is what was done for good.
	Ledger *flow.Ledger
	Now    time.Time
}

// OwnerOf returns an Etcd as the owner of what the flow emits.
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

// asked reports whether the spec has to be carried out because an annotation asks for it, or because it never was.
func asked(etcd *druidv1alpha1.Etcd) bool {
	return etcd.Annotations[AnnotationOperation] == OperationReconcile || etcd.Annotations[AnnotationDruidOperation] == OperationReconcile ||
		etcd.Status.ObservedGeneration == nil
}

func suspended(etcd *druidv1alpha1.Etcd) bool {
	_, found := etcd.Annotations[AnnotationSuspend]
	return found
}

// notDue says why the spec is not carried out now; empty if it is. What has been begun goes on, as long as neither the spec nor the program
// has changed since.
func (in Inputs) notDue() string {
	etcd := in.Etcd
	switch {
	case suspended(etcd):
		return "the annotation " + AnnotationSuspend + " suspends it"
	case asked(etcd) || in.AutoReconcile:
		return ""
	case *etcd.Status.ObservedGeneration != etcd.Generation:
		return "the spec has changed: annotate the Etcd with " + AnnotationOperation + "=" + OperationReconcile + " to carry it out"
	case in.EmittedVersion != "" && in.EmittedVersion != in.Version:
		return "the operator has changed: its changes are carried out with the next operation"
	}
	return ""
}

// served returns the members that have belonged to the cluster.
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
