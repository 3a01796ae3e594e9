package flow

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Choose picks a number of the options for an owner, by a hash of its UID: the same at each call, other ones for other owners, and when an
// option comes or goes no more of them change than have to. The result is sorted. It has all options if there are not more.
func Choose(uid types.UID, options []string, count int) []string {
	chosen := slices.Compact(slices.Sorted(slices.Values(options)))
	slices.SortStableFunc(chosen, func(a, b string) int { return strings.Compare(weight(uid, a), weight(uid, b)) })
	chosen = chosen[:min(max(count, 0), len(chosen))]
	slices.Sort(chosen)
	return chosen
}

func weight(uid types.UID, option string) string { return object.Digest([]byte(uid), []byte(option)) }
