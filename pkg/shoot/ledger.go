package shoot

import (
	"context"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// ledgerName is the name of the ledger, in the namespace of the control plane.
const ledgerName = "shoot-ledger"

// ledgerKey returns the name of the ledger.
func (in Inputs) ledgerKey() flow.Key { return flow.Key{Namespace: in.Namespace, Name: ledgerName} }

// observeLedger reads what was done for good. Only a deletion that is not forced needs it.
func (r *reconciler) observeLedger(ctx context.Context, in *Inputs) error {
	if !in.NamespaceExists || !in.Deleting || in.forced() {
		return nil
	}
	var err error
	in.Ledger, err = r.ledgers.Read(ctx, in.ledgerKey())
	return err
}
