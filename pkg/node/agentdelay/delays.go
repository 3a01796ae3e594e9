package agentdelay

import (
	"cmp"
	"slices"
	"time"
)

// nodeDelay is a node with its current or desired delay.
type nodeDelay struct {
	name string
	// delay is a Go duration. A current delay may be any text.
	delay string
}

// widest is the maximum width of a gap between two delays, relative to an even spread, before all delays are spread
// again. If nodes leave at random, a much smaller value would change all delays now and then. A single gap does no
// harm, but many gaps crowd the remaining delays.
const widest = 8

// spread returns the delay of each node. Sorted by name, node i of n gets minimum + i·(maximum-minimum)/n (the concept
// document of gardener-resource-manager, "Node Agent Reconciliation Delay Controller").
func spread(nodes []nodeDelay, minimum, maximum time.Duration) []nodeDelay {
	result := slices.Clone(nodes)
	slices.SortFunc(result, func(a, b nodeDelay) int { return cmp.Compare(a.name, b.name) })
	count := time.Duration(len(result))
	for i := range result {
		// Computed in two parts, because the product of the index and the range may overflow.
		whole, rest := (maximum-minimum)/count, (maximum-minimum)%count
		result[i].delay = (minimum + time.Duration(i)*whole + time.Duration(i)*rest/count).String()
	}
	return result
}

// keep returns the delay of each node like spread, but keeps current delays that are valid and unique. Every other
// node, sorted by name, gets the middle of the widest gap. All delays are spread again if afterwards a gap is more than
// eight times as wide as in an even spread, or if at least half of the delays were missing. It requires minimum <
// maximum.
func keep(nodes []nodeDelay, minimum, maximum time.Duration) []nodeDelay {
	result := slices.Clone(nodes)
	slices.SortFunc(result, func(a, b nodeDelay) int { return cmp.Compare(a.name, b.name) })
	var taken []time.Duration // sorted
	var without []int
	for i := range result {
		delay, err := time.ParseDuration(result[i].delay)
		place, equal := slices.BinarySearch(taken, delay)
		if err != nil || equal || delay < minimum || delay >= maximum {
			without = append(without, i)
			continue
		}
		taken = slices.Insert(taken, place, delay)
	}
	if len(without) >= len(taken) {
		return spread(nodes, minimum, maximum)
	}
	for _, i := range without {
		delay, place, _ := widestGap(taken, minimum, maximum)
		taken = slices.Insert(taken, place, delay)
		result[i].delay = delay.String()
	}
	if _, _, width := widestGap(taken, minimum, maximum); width/widest > (maximum-minimum)/time.Duration(len(result)) {
		return spread(nodes, minimum, maximum)
	}
	return result
}

// widestGap returns the first of the widest gaps between sorted delays: the delay to insert, its index, and the width
// of the gap. For a gap below the first delay, the delay to insert is the minimum.
func widestGap(delays []time.Duration, minimum, maximum time.Duration) (delay time.Duration, place int, width time.Duration) {
	if len(delays) == 0 {
		return minimum, 0, maximum - minimum
	}
	delay, place, width = minimum, 0, delays[0]-minimum
	for i, from := range delays {
		to := maximum
		if i+1 < len(delays) {
			to = delays[i+1]
		}
		if to-from > width {
			delay, place, width = from+(to-from)/2, i+1, to-from
		}
	}
	return delay, place, width
}

// differing returns the wanted delays that differ from the present ones.
func differing(present, wanted []nodeDelay) []nodeDelay {
	is := make(map[string]string, len(present))
	for _, node := range present {
		is[node.name] = node.delay
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(node nodeDelay) bool { return is[node.name] == node.delay })
}
