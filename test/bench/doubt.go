package main

import (
	"fmt"
	"slices"
)

const (
	// Above these values a comparison within the run is doubtful.
	unevenLimits = 0.1
	busyShare    = 0.1 // of all CPUs
	// mostTurns is the number of turns from which on a median counts although turns disagree.
	mostTurns = 7
)

// doubtsOfShare returns the reasons to doubt a share of the limit: the limit changed during the only turn, few
// turns disagree on whether the share meets its target, or other programs kept the machine busy.
func (r *results) doubtsOfShare(limitOf func(limits) phase, measured []phase) []string {
	if len(measured) == 0 || len(r.Limits) == 0 {
		return nil
	}
	var doubts []string
	first, last := limitOf(r.Limits[0]), limitOf(r.Limits[len(r.Limits)-1])
	shares := r.shares(limitOf, measured, phase.rate)
	if disagree(shares) && len(shares) < mostTurns {
		doubts = append(doubts, fmt.Sprintf("the shares of %s by turns are %.2f", measured[0].Name, shares))
	}
	if ratio := first.rate() / last.rate(); len(measured) == 1 && (ratio > 1+unevenLimits || ratio < 1/(1+unevenLimits)) {
		doubts = append(doubts, fmt.Sprintf("%s and %s differ by more than %.0f %%", first.Name, last.Name, unevenLimits*100))
	}
	for _, limits := range r.Limits {
		doubts = append(doubts, r.busy(limitOf(limits))...)
	}
	for _, phase := range measured {
		doubts = append(doubts, r.busy(phase)...)
	}
	return doubts
}

// disagree reports whether turns disagree on whether a share of the limit meets its target.
func disagree(shares []float64) bool {
	return len(shares) > 0 && slices.Min(shares) < wantedShare && slices.Max(shares) >= wantedShare
}

// disagree reports whether turns disagree on any share, so that more of them are needed.
func (r *results) disagree() bool {
	return disagree(r.shares(createOf, r.Creates, phase.rate)) || disagree(r.shares(updateOf, r.turnUpdates(), phase.rate))
}

func (r *results) doubtsOfDrift() []string {
	if r.Drift == nil {
		return nil
	}
	return r.busy(r.Drift.phase)
}

func (r *results) busy(p phase) []string {
	if p.ForeignCPUs <= busyShare*float64(r.CPUs) {
		return nil
	}
	return []string{fmt.Sprintf("other programs kept %.2f CPUs busy during %s", p.ForeignCPUs, p.Name)}
}
