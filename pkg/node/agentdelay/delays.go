package agentdelay

import (
	"cmp"
	"slices"
	"time"
)

// nodeDelay is a node and the delay that its annotation has, or is to have.
type nodeDelay struct {
	name string
	// delay is the text of a Go duration; what is there may be anything.
	delay string
}

// widest is how many times as wide as in an even spread a gap between two delays may be before all are spread again. When nodes leave at
// random, much less would have all of them change now and then; a gap by itself does no harm, but many gaps crowd the rest.
const widest = 8

// spread returns the delay of each node: for node i of n, in the order of their names, minimum + i·(maximum-minimum)/n (the concept
// document of gardener-resource-manager, "Node Agent Reconciliation Delay Controller").
func spread(nodes []nodeDelay, minimum, maximum time.Duration) []nodeDelay {
	result := slices.Clone(nodes)
	slices.SortFunc(result, func(a, b nodeDelay) int { return cmp.Compare(a.name, b.name) })
	count := time.Duration(len(result))
	for i := range result {
		// In two parts, since the product of the index and the whole may overflow.
		whole, rest := (maximum-minimum)/count, (maximum-minimum)%count
		result[i].delay = (minimum + time.Duration(i)*whole + time.Duration(i)*rest/count).String()
	}
	return result
}

// keep returns the delay of each node like spread, but leaves the delays that are there, if they are valid and no two are equal. Each
// other node, in the order of their names, gets the middle of the widest gap. If a gap is left then that is more than eight times as wide
// as in an even spread, all are spread again. If at least half
// of the delays are missing, that is done as well. It is for minimum < maximum.
func keep(nodes []nodeDelay, minimum, maximum time.Duration) []nodeDelay {
	result := slices.Clone(nodes)
	slices.SortFunc(result, func(a, b nodeDelay) int { return cmp.Compare(a.name, b.name) })
	var taken []time.Duration // in their order
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

// widestGap returns the first of the widest gaps between delays, which are in their order: the delay that belongs there, its place in
// the order, and how wide the gap is. Below the first delay, that is the minimum itself.
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

// differing returns those of the wanted delays that differ from what is there.
func differing(present, wanted []nodeDelay) []nodeDelay {
	is := make(map[string]string, len(present))
	for _, node := range present {
		is[node.name] = node.delay
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(node nodeDelay) bool { return is[node.name] == node.delay })
}
