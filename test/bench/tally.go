package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// failedRequests counts, in a tally, those that were answered with an error. They are counted under their verb too.
const failedRequests = "(failed)"

// tally counts requests by verb and resource, such as "patch configmaps".
type tally map[string]int

// byVerb counts requests by their verb.
func (t tally) byVerb() map[string]int {
	result := map[string]int{}
	for key, count := range t {
		if verb, _, found := strings.Cut(key, " "); found {
			result[verb] += count
		}
	}
	return result
}

// total counts all requests but watches.
func (t tally) total() int {
	total := 0
	for verb, count := range t.byVerb() {
		if verb != "watch" {
			total += count
		}
	}
	return total
}

// writes counts the requests that change something.
func (t tally) writes() int {
	writes := 0
	for verb, count := range t.byVerb() {
		if (request{verb: verb}).writes() {
			writes += count
		}
	}
	return writes
}

// health counts the requests of the health controller.
func (t tally) health() int {
	health := 0
	for key, count := range t {
		if strings.HasSuffix(key, ofHealth) {
			health += count
		}
	}
	return health
}

func (t tally) add(other tally) tally {
	sum := maps.Clone(t)
	for key, count := range other {
		sum[key] += count
	}
	return sum
}

// String lists the counts, the greatest first.
func (t tally) String() string {
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
