package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// observe reads the inputs of the plan.
func (r *Reconciler) observe(ctx context.Context, etcd *druidv1alpha1.Etcd) (Inputs, error) {
	in := Inputs{
		Etcd: etcd, Class: r.Options.Class, Image: r.Options.MemberImage, Version: r.Options.Version, AutoReconcile: r.Options.AutoReconcile,
		Now: r.Options.Clock.Now(),
	}
	set := &appsv1.StatefulSet{}
	err := r.Client.Get(ctx, keyOf(etcd), set)
	switch {
	case err == nil && metav1.IsControlledBy(set, etcd):
		in.StatefulSet = set
	case client.IgnoreNotFound(err) != nil:
		return in, fmt.Errorf("read the StatefulSet of Etcd %s: %w", keyOf(etcd), err)
	}
	if in.Members, err = listMembers(ctx, r.Client, keyOf(etcd)); err != nil {
		return in, err
	}
	if err := r.observeBackups(ctx, &in); err != nil {
		return in, err
	}
	if err := r.observeCompaction(ctx, &in); err != nil {
		return in, err
	}
	key := BundleKey(keyOf(etcd))
	var mr resourcesv1alpha1.ManagedResource
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, &mr)
	if client.IgnoreNotFound(err) != nil {
		return in, fmt.Errorf("read ManagedResource %s: %w", key, err)
	}
	if err := r.observeEmitted(ctx, &in, &mr); err != nil {
		return in, err
	}
	in.Ledger, err = r.Ledgers.Read(ctx, LedgerKey(keyOf(etcd)))
	return in, err
}

// observeEmitted reads which version computed the emitted bundle, and its objects if their rollout is not complete. Without
// them, the rollout is held.
func (r *Reconciler) observeEmitted(ctx context.Context, in *Inputs, mr *resourcesv1alpha1.ManagedResource) error {
	key := BundleKey(keyOf(in.Etcd))
	live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}}
	version, known, err := live.Choice(OwnerOf(in.Etcd), key, choiceVersion)
	if err != nil {
		return err
	}
	if in.EmittedVersion = mr.Annotations[flow.AnnotationVersion]; known {
		in.EmittedVersion = version
	}
	if !in.rollsOut() || in.notDue() == "" && in.invalid() == "" {
		return nil
	}
	in.Emitted, err = flow.Content(ctx, r.Uncached, mr)
	return client.IgnoreNotFound(err)
}

// observeBackups reads the Leases of snapshots and the Secret of the store.
func (r *Reconciler) observeBackups(ctx context.Context, in *Inputs) error {
	in.snapshotLeaseExists = map[string]bool{}
	for name, into := range map[string]*lease.Snapshot{
		lease.FullName(in.Etcd.Name): &in.FullSnapshot, lease.DeltaName(in.Etcd.Name): &in.DeltaSnapshot,
	} {
		found := &coordinationv1.Lease{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: in.Etcd.Namespace, Name: name}, found)
		switch {
		case err == nil:
			*into, in.snapshotLeaseExists[name] = lease.ReadSnapshot(found), true
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("read Lease %s/%s: %w", in.Etcd.Namespace, name, err)
		}
	}
	if in.store() == nil || in.deleting() {
		return nil
	}
	var err error
	in.StoreSecret, err = r.storeSecret(ctx, in.Etcd.Namespace, in.store())
	return err
}

// storeSecret reads the Secret of a store.
func (r *Reconciler) storeSecret(ctx context.Context, namespace string, store *druidv1alpha1.StoreSpec) (StoreSecret, error) {
	if store.SecretRef == nil {
		return StoreSecret{}, nil
	}
	secret := &corev1.Secret{}
	err := r.Uncached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: store.SecretRef.Name}, secret)
	if apierrors.IsNotFound(err) {
		return StoreSecret{Missing: fmt.Sprintf("the Secret %s/%s does not exist", namespace, store.SecretRef.Name)}, nil
	}
	if err != nil {
		return StoreSecret{}, fmt.Errorf("read Secret %s/%s: %w", namespace, store.SecretRef.Name, err)
	}
	return storeSecretOf(secret.Data), nil
}

// listMembers returns the contents of the Leases of an Etcd's members, sorted by name.
func listMembers(ctx context.Context, reader client.Reader, etcd types.NamespacedName) ([]lease.Member, error) {
	var list coordinationv1.LeaseList
	err := reader.List(ctx, &list, client.InNamespace(etcd.Namespace), client.MatchingLabels{
		lease.LabelManagedBy: lease.ManagedBy, lease.LabelPartOf: etcd.Name, lease.LabelComponent: lease.Component,
	})
	if err != nil {
		return nil, fmt.Errorf("list the Leases of Etcd %s: %w", etcd, err)
	}
	members := make([]lease.Member, 0, len(list.Items))
	for i := range list.Items {
		members = append(members, lease.Read(&list.Items[i]))
	}
	slices.SortFunc(members, func(a, b lease.Member) int { return strings.Compare(a.Name, b.Name) })
	return members, nil
}
