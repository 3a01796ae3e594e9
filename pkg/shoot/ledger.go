package shoot

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// ledgerName is the name of the ledger, in the namespace of the control plane.
const ledgerName = "shoot-ledger"

// ledgerKey returns the namespace and name of the ledger.
func (in Inputs) ledgerKey() flow.Key { return flow.Key{Namespace: in.Namespace, Name: ledgerName} }

// observeLedger reads the ledger. Only the first token of the resource-manager, rotations, changes of the encryption, and
// deletions that are not forced need it.
func (r *reconciler) observeLedger(ctx context.Context, in *Inputs) error {
	needed := in.moves() || in.encryptionChanges() || !in.hasToken(accessSecret(resourcemanager.Account))
	if in.Deleting {
		needed = !in.forced()
	}
	if !in.NamespaceExists || !needed {
		return nil
	}
	var err error
	in.Ledger, err = r.ledgers.Read(ctx, in.ledgerKey())
	return err
}

// entryServed is the entry of the ledger which records that the API server has served. It is written before the first
// token is requested, so before anything but gardenlet can use the API server.
const entryServed = "served"

// served reports whether the API server has ever served, so that users' objects may exist. The absence of a token does
// not mean that it has not: anyone can delete a Secret or its annotation to have the token renewed, and a restored seed
// has neither. Shoots that are older than the entry, or whose ledger was lost, have other traces: the encryption that their
// status reports, or ManagedResources on which the shoot's resource-manager has worked.
func (in Inputs) served() bool {
	if in.Ledger != nil && in.Ledger.Has(entryServed, string(in.Owner.UID)) {
		return true
	}
	_, token := in.Tokens[accessSecret(resourcemanager.Account)]
	return token || in.ShootManaged || in.Shoot.Status.Credentials != nil && in.Shoot.Status.Credentials.EncryptionAtRest != nil
}

// observeServed reads whether the shoot's resource-manager has worked on a ManagedResource. Its first token requires that
// the API server serves.
func (r *reconciler) observeServed(ctx context.Context, in *Inputs) error {
	if !in.Deleting {
		return nil
	}
	var list resourcesv1alpha1.ManagedResourceList
	if err := r.emitter.Reader.List(ctx, &list, client.InNamespace(in.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the ManagedResources in namespace %s: %w", in.Namespace, err)
	}
	for i := range list.Items {
		in.ShootManaged = in.ShootManaged || managedInShoot(&list.Items[i])
	}
	return nil
}

// managedInShoot reports whether the shoot's resource-manager has worked on a ManagedResource.
func managedInShoot(mr *resourcesv1alpha1.ManagedResource) bool {
	class := ptr.Deref(mr.Spec.Class, "")
	return class == "" && (controllerutil.ContainsFinalizer(mr, resourcesv1alpha1.FinalizerOf(class)) ||
		mr.Status.ObservedGeneration > 0 || len(mr.Status.Resources) > 0)
}

// recordServed records in the ledger that the API server has served.
func (r *reconciler) recordServed(ctx context.Context, in Inputs) error {
	if in.Ledger == nil || in.Ledger.Has(entryServed, string(in.Owner.UID)) {
		return nil
	}
	err := in.Ledger.Write(ctx, r.seed, in.Owner, entryServed, flow.Entry{Value: string(in.Owner.UID), Time: in.Now.UTC()})
	if err != nil {
		r.ledgers.Forget(in.ledgerKey())
		return err
	}
	r.states.Forget(in.Owner.UID) // the next pass compares the ShootState, which contains the ledger
	return nil
}
