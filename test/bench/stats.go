package main

import (
	"math"
	"slices"
	"time"
)

// median returns the middle value, or the mean of the two middle values of an even number of values. It needs at
// least one value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// percentile returns the smallest value such that at least a share of all values is not above it (nearest rank).
// Some of count values may be missing. They count as greater than all others. The second result is false if the
// percentile is one of them.
func percentile(values []time.Duration, count int, share float64) (time.Duration, bool) {
	rank := max(1, int(math.Ceil(share*float64(count))))
	if rank > len(values) {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[rank-1], true
}
