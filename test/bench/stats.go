package main

import (
	"math"
	"slices"
	"time"
)

// median returns the value in the middle, and the mean of the two in the middle of an even number. There must be one at least.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

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
