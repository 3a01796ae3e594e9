package flow

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// BreakGlass decides whether a flow must apply the resource-manager of its cluster itself, because the resource-manager
// is down and cannot recover on its own. It returns the reason and the time of the next check. The reason is empty
// while the resource-manager is up. lease is the leader election lease of the resource-manager, nil if it does not
// exist. since is when the flow started to check. The lease is stale after staleAfter without a renewal. BreakGlass is
// pure.
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
