package shoot

import (
	"context"

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
