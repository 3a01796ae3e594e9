package flow

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Pacing says how fast changes of the code are rolled out over the owners of a flow. What users change is not held back.
type Pacing struct {
	// Budget is how many ManagedResources of the flow may be rolling out at a time.
	Budget int
	// MaxFailed is how many owners may fail with the present version before the rest is held.
	MaxFailed int
	// Retry is after how long an owner that is held asks again for a slot.
	Retry time.Duration
}

// Fleet is the state of all ManagedResources of a flow.
type Fleet struct {
	// Rolling counts those that are not rolled out.
	Rolling int
	// Failed counts those owners, written by the present version, that fail.
	Failed int
}

// Admit decides whether an owner may change now that only the code has changed, by a number of bundles. Otherwise it returns why not, and when
// to ask again. It is pure.
func (p Pacing) Admit(bundles int, window *Window, fleet Fleet, now time.Time) (why string, next time.Time) {
	switch {
	case fleet.Failed > 0 && fleet.Failed >= p.MaxFailed:
		return fmt.Sprintf("%d owners fail with this version of the program, which stops its rollout", fleet.Failed), now.Add(p.Retry)
	case window != nil && !window.Open:
		return "only the program has changed, and the maintenance window is closed", window.Opens
	case fleet.Rolling > 0 && fleet.Rolling+bundles > p.Budget:
		return fmt.Sprintf("only the program has changed, and %d of at most %d ManagedResources are rolling out", fleet.Rolling, p.Budget), now.Add(p.Retry)
	}
	return "", time.Time{}
}

// FleetOf counts over the ManagedResources of a flow.
func FleetOf(all []resourcesv1alpha1.ManagedResource, version string) Fleet {
	var fleet Fleet
	failed := map[string]bool{}
	for i := range all {
		mr := &all[i]
		if notRolledOut(mr) != "" {
			fleet.Rolling++
		}
		if mr.Annotations[AnnotationVersion] == version && failing(mr) != "" {
			failed[mr.Labels[LabelOwner]] = true
		}
	}
	fleet.Failed = len(failed)
	return fleet
}

// Pacer admits owners one after the other. Its memory bridges the time until a cache shows what was written; after a restart all that it has
// to know is what lives.
type Pacer struct {
	Pacing Pacing
	Clock  clock.PassiveClock

	mu sync.Mutex
	// admitted are the bundles of owners that may change and whose change has not been seen yet.
	admitted map[types.UID]int
	// fleet was counted at a time. Owners that ask soon after each other share it: each would look at all ManagedResources otherwise.
	fleet   Fleet
	counted time.Time
}

// countedFor is how long a count of the fleet is used.
const countedFor = time.Second

// hold returns a wait for an owner that has to wait for its slot, and when to ask again.
func (p *Pacer) hold(ctx context.Context, reader client.Reader, owner Owner, plan Plan, live Live, decision Decision, version string,
) (*Wait, time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changes := 0
	for _, step := range decision.Steps {
		if step.Action != ActionRestore && step.Action != ActionRecord {
			changes++
		}
	}
	if changes == 0 || plan.Deleting || !inputsOf(live.owned(owner)).codeOnly(plan, version) {
		if p.admitted[owner.UID] > 0 {
			delete(p.admitted, owner.UID)
			p.counted = time.Time{} // what was admitted is rolling out now
		}
		return nil, time.Time{}, nil
	}
	if p.admitted[owner.UID] > 0 {
		return nil, time.Time{}, nil
	}
	if err := p.count(ctx, reader, owner.Flow, version); err != nil {
		return nil, time.Time{}, err
	}
	fleet := p.fleet
	for _, bundles := range p.admitted {
		fleet.Rolling += bundles
	}
	why, next := p.Pacing.Admit(changes, plan.Window, fleet, p.Clock.Now())
	if why != "" {
		return &Wait{Name: "rollout-slot", Reason: why, HoldsAll: true}, next, nil
	}
	if p.admitted == nil {
		p.admitted = map[types.UID]int{}
	}
	p.admitted[owner.UID] = changes
	return nil, time.Time{}, nil
}

// count counts over the ManagedResources of a flow, unless that was done a moment ago.
func (p *Pacer) count(ctx context.Context, reader client.Reader, flow, version string) error {
	now := p.Clock.Now()
	if !p.counted.IsZero() && now.Sub(p.counted) < countedFor {
		return nil
	}
	var all resourcesv1alpha1.ManagedResourceList
	if err := reader.List(ctx, &all, client.MatchingLabels{LabelFlow: flow}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the ManagedResources of %s: %w", flow, err)
	}
	p.fleet, p.counted = FleetOf(all.Items, version), now
	return nil
}

// earlier returns the earlier of two times; zero stands for never.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}
