package console

import (
	"cmp"
	"slices"
	"strings"
)

// maxSuggestions is the maximum number of suggested names.
const maxSuggestions = 3

// nearest returns the names that are most similar to the wanted one, the nearest first. It returns none if none is
// similar.
func nearest(wanted string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var candidates []candidate
	for _, name := range names {
		tolerance := max(2, max(len(wanted), len(name))/3)
		if distance := distance(wanted, name); distance <= tolerance || len(wanted) >= 3 && strings.Contains(name, wanted) {
			candidates = append(candidates, candidate{name, distance})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	found := make([]string, 0, maxSuggestions)
	for _, candidate := range candidates[:min(len(candidates), maxSuggestions)] {
		found = append(found, candidate.name)
	}
	return found
}

// distance returns the Levenshtein distance: the number of characters to insert, delete or replace to turn one text
// into the other.
func distance(a, b string) int {
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		current := make([]int, len(b)+1)
		current[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			current[j+1] = min(previous[j+1]+1, current[j]+1, previous[j]+change)
		}
		previous = current
	}
	return previous[len(b)]
}
