package measure

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// FailedRequests counts, in a Tally, the requests that were answered with an error. They are also counted under
// their verb.
const FailedRequests = "(failed)"

// Tally counts requests by verb and resource, for example "patch configmaps".
type Tally map[string]int

// ByVerb counts requests by their verb.
func (t Tally) ByVerb() map[string]int {
	result := map[string]int{}
	for key, count := range t {
		if verb, _, found := strings.Cut(key, " "); found {
			result[verb] += count
		}
	}
	return result
}

// Total counts all requests except watches.
func (t Tally) Total() int {
	total := 0
	for verb, count := range t.ByVerb() {
		if verb != "watch" {
			total += count
		}
	}
	return total
}

// Writes counts the requests that change something.
func (t Tally) Writes() int {
	writes := 0
	for _, count := range t.OnlyWrites() {
		writes += count
	}
	return writes
}

// OnlyWrites returns the counts of requests that change something.
func (t Tally) OnlyWrites() Tally {
	result := Tally{}
	for key, count := range t {
		if verb, _, found := strings.Cut(key, " "); found && (Request{Verb: verb}).Writes() {
			result[key] = count
		}
	}
	return result
}

// Health counts the requests of the health controller.
func (t Tally) Health() int {
	health := 0
	for key, count := range t {
		if strings.HasSuffix(key, ofHealth) {
			health += count
		}
	}
	return health
}

// Add returns the sum of two tallies.
func (t Tally) Add(other Tally) Tally {
	sum := maps.Clone(t)
	for key, count := range other {
		sum[key] += count
	}
	return sum
}

// String lists the counts in descending order.
func (t Tally) String() string {
	keys := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		if t[a] != t[b] {
			return t[b] - t[a]
		}
		return strings.Compare(a, b)
	})
	texts := make([]string, 0, len(keys))
	for _, key := range keys {
		texts = append(texts, fmt.Sprintf("%d %s", t[key], key))
	}
	return strings.Join(texts, ", ")
}
