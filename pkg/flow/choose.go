package flow

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Choose picks count options for an owner by rendezvous hashing with its UID. The choice is stable for an owner,
// differs between owners, and changes as little as possible when options are added or removed. The result is sorted. It
// contains all options if there are no more than count.
func Choose(uid types.UID, options []string, count int) []string {
	chosen := slices.Compact(slices.Sorted(slices.Values(options)))
	slices.SortStableFunc(chosen, func(a, b string) int { return strings.Compare(weight(uid, a), weight(uid, b)) })
	chosen = chosen[:min(max(count, 0), len(chosen))]
	slices.Sort(chosen)
	return chosen
}

func weight(uid types.UID, option string) string { return object.Digest([]byte(uid), []byte(option)) }
