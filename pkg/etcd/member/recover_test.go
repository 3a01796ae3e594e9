package member

import (
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/etcd/snapshot"
)

// TestRecovery checks that an empty store or a wrong one never leads to an empty cluster once a cluster existed.
func TestRecovery(t *testing.T) {
	one := []snapshot.Epoch{{Number: 1, Cluster: "c1"}}
	two := []snapshot.Epoch{one[0], {Number: 2, Cluster: "c2", Follows: 1}}
	foreign := []snapshot.Epoch{{Number: 1, Cluster: "x"}}
	stored := lease.Snapshot{Cluster: "c1", Revision: 77}
	for name, test := range map[string]struct {
		in   known
		want recovery
		wait string
	}{
		"nothing exists":                           {known{}, recovery{}, ""},
		"backups declared, store is empty":         {known{declared: "latest"}, recovery{}, "the store has none"},
		"recorded, store is empty":                 {known{clusters: []string{"c1"}}, recovery{}, "has no backups of the cluster c1"},
		"recorded, store of another cluster":       {known{clusters: []string{"c1"}, epochs: foreign}, recovery{follows: 1}, "of the cluster x, not of c1"},
		"recorded":                                 {known{clusters: []string{"c1"}, epochs: one, stored: stored}, recovery{restore: true, atLeast: 77, follows: 1}, ""},
		"recorded, restored before":                {known{clusters: []string{"c1"}, epochs: two, stored: stored}, recovery{restore: true, follows: 2}, ""},
		"not recorded, store has backups":          {known{epochs: one}, recovery{follows: 1}, "no Lease records a cluster"},
		"not recorded, declared":                   {known{epochs: one, declared: "c1"}, recovery{restore: true, follows: 1}, ""},
		"not recorded, latest declared":            {known{epochs: two, declared: "latest"}, recovery{restore: true, follows: 2}, ""},
		"not recorded, another declared":           {known{epochs: one, declared: "c9"}, recovery{follows: 1}, "no Lease records a cluster"},
		"loss accepted":                            {known{epochs: two, acceptedLoss: "c1"}, recovery{restore: true, follows: 2}, ""},
		"loss accepted, store is empty":            {known{acceptedLoss: "c1"}, recovery{}, ""},
		"loss of another cluster accepted":         {known{epochs: one, acceptedLoss: "c9"}, recovery{follows: 1}, "no Lease records a cluster"},
		"empty accepted":                           {known{epochs: two, acceptedLoss: "c2", acceptEmpty: "c2"}, recovery{follows: 2}, ""},
		"empty accepted for an earlier cluster":    {known{epochs: two, acceptedLoss: "c2", acceptEmpty: "c1"}, recovery{restore: true, follows: 2}, ""},
		"empty accepted, but not the loss":         {known{epochs: one, clusters: []string{"c1"}, acceptEmpty: "c1"}, recovery{restore: true, follows: 1}, ""},
		"recorded cluster, epoch of two histories": {known{clusters: []string{"c1", "c2"}, epochs: two}, recovery{restore: true, follows: 2}, ""},
	} {
		got := decideRecovery(test.in)
		if !strings.Contains(got.wait, test.wait) || (got.wait == "") != (test.wait == "") {
			t.Errorf("%s: it waits for %q, not for %q", name, got.wait, test.wait)
		}
		if got.wait = ""; got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}
