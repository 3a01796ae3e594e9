package main

import (
	"math"
	"slices"
	"time"
)

// percentile returns the smallest value that at least a share of all are not above (nearest rank). Of count values some
// may be missing, and stand for more than any other; the result is then false if it is one of them.
func percentile(values []time.Duration, count int, share float64) (time.Duration, bool) {
	rank := max(1, int(math.Ceil(share*float64(count))))
	if rank > len(values) {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[rank-1], true
}
