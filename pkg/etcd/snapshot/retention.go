package snapshot

import (
	"slices"
	"time"
)

// Policy defines which snapshots garbage collection deletes.
type Policy struct {
	// Limit is the number of full snapshots to keep. With 0, older snapshots are thinned out exponentially: all of the
	// last hour, and of older full snapshots the last one of each hour of a day, of each day of a week, and of each of four weeks.
	Limit int `json:"limit,omitempty"`
	// DeltaRetention is how long delta snapshots are kept that the newest full snapshot replaces. Default: 1 h.
	DeltaRetention time.Duration `json:"-"`
}

const (
	hour = time.Hour
	day  = 24 * time.Hour
	week = 7 * day
)

// Garbage returns the snapshots to delete at a time. It is pure. It never returns the newest full snapshot of an epoch, or a
// delta snapshot that continues the newest full snapshot of the latest epoch.
func Garbage(objects []Object, policy Policy, now time.Time) []Object {
	newest := map[int]Object{}
	latest := 0
	for _, object := range objects {
		if !object.IsFull() {
			continue
		}
		latest = max(latest, object.Epoch)
		if before, found := newest[object.Epoch]; !found || object.Last > before.Last || object.Last == before.Last && object.Created.After(before.Created) {
			newest[object.Epoch] = object
		}
	}
	full := policy.fulls(objects, now)
	var garbage []Object
	for _, object := range objects {
		keep := object.Created.After(now.Add(-hour))
		switch {
		case object.IsFull():
			keep = keep && policy.Limit == 0 || full[object.Key] || object == newest[object.Epoch]
		case object.Epoch > latest, object.Epoch == latest && object.Last > newest[latest].Last:
			keep = true
		default:
			keep = keep || object.Created.After(now.Add(-policy.DeltaRetention))
		}
		if !keep {
			garbage = append(garbage, object)
		}
	}
	return garbage
}

// fulls returns the full snapshots that the policy keeps, by their keys.
func (p Policy) fulls(objects []Object, now time.Time) map[string]bool {
	var fulls []Object
	for _, object := range objects {
		if object.IsFull() {
			fulls = append(fulls, object)
		}
	}
	slices.SortFunc(fulls, func(a, b Object) int { return b.Created.Compare(a.Created) })
	keep := map[string]bool{}
	if p.Limit > 0 {
		for _, full := range fulls[:min(p.Limit, len(fulls))] {
			keep[full.Key] = true
		}
		return keep
	}
	// The newest of each interval is met first.
	taken := map[[2]int64]bool{}
	for _, full := range fulls {
		for _, level := range []struct {
			length time.Duration
			count  int64
		}{{hour, 24}, {day, 7}, {week, 4}} {
			at, present := full.Created.Unix()/int64(level.length/time.Second), now.Unix()/int64(level.length/time.Second)
			interval := [2]int64{int64(level.length), at}
			if present-at > level.count || taken[interval] {
				continue
			}
			taken[interval], keep[full.Key] = true, true
		}
	}
	return keep
}
