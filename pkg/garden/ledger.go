package garden

import (
	"context"
	"slices"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

const (
	// ledgerName is the name of the ledger, in the namespace of the operator.
	ledgerName = "garden-ledger"
	// entryServed records that the API of the garden was deployed, so that objects that need the Garden may exist. entryUnused records that the
	// deletion has seen none.
	entryServed, entryUnused = "served", "unused"
)

// observeLedger reads what former passes have recorded. It sends no request if nothing was recorded since the last pass.
func (r *reconciler) observeLedger(ctx context.Context, in *Inputs) error {
	ledger, err := r.ledgers.Read(ctx, in.key(ledgerName))
	if err != nil {
		return err
	}
	in.Ledger = ledger
	in.Served = ledger.Has(entryServed, string(in.Owner.UID)) || in.emitted(bundleAPI)
	in.Unused = ledger.Has(entryUnused, string(in.Owner.UID))
	return nil
}

// record writes into the ledger before the plan has an effect: that the API of the garden will be deployed, and that a deletion begins because
// nothing needs the Garden. After the deletion has begun, the API does not answer any more.
func (p *pass) record(ctx context.Context) error {
	in := p.in
	var entry string
	deploys := slices.ContainsFunc(p.Plan.Bundles, func(bundle flow.Bundle) bool { return bundle.Key == in.key(bundleAPI) })
	switch {
	case in.Deleting && in.Served && !in.Unused && in.inUse() == "":
		entry = entryUnused
	case !in.Deleting && !p.recorded && deploys:
		entry = entryServed
	default:
		return nil
	}
	if !in.Ledger.Has(entry, string(in.Owner.UID)) {
		if err := in.Ledger.Write(ctx, p.runtime, in.Owner, entry, flow.Entry{Value: string(in.Owner.UID), Time: in.Now.UTC()}); err != nil {
			p.ledgers.Forget(in.key(ledgerName))
			return err
		}
	}
	p.recorded = p.recorded || entry == entryServed
	return nil
}
