package flow

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// BreakGlass decides whether a flow has to apply the resource-manager of its cluster itself, because that one does not live and cannot heal
// itself: it reports why, and when to look again; why is empty while it lives. The lease is that of its leader, nil if there is none, and
// since is when the flow began to look. The lease is stale after staleAfter without a renewal. It is pure.
func BreakGlass(lease *coordinationv1.Lease, since time.Time, staleAfter time.Duration, now time.Time) (why string, next time.Time) {
	last, whose := since, "no resource-manager has taken its lease"
	if lease != nil && lease.Spec.RenewTime != nil {
		whose = "the resource-manager has not renewed its lease"
		if lease.Spec.RenewTime.After(last) {
			last = lease.Spec.RenewTime.Time
		}
	}
	if stale := last.Add(staleAfter); now.Before(stale) {
		return "", stale
	}
	return fmt.Sprintf("%s for %s", whose, now.Sub(last).Round(time.Second)), now.Add(staleAfter)
}
