package member

import (
	"slices"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

func TestDecide(t *testing.T) {
	served := func(name, cluster, url string) lease.Member {
		return lease.Member{Name: name, Holder: &lease.Holder{ID: "a" + name, ClusterID: cluster}, ClientURL: url}
	}
	empty := func(name string) lease.Member { return lease.Member{Name: name} }
	for name, test := range map[string]struct {
		member  string
		leases  []lease.Member
		want    action
		reason  string
		cluster string
	}{
		"no Lease yet":                         {"e-0", nil, actionWait, lease.ReasonJoining, ""},
		"own Lease missing, others formed":     {"e-0", []lease.Member{served("e-1", "c1", "u1")}, actionWait, lease.ReasonJoining, ""},
		"first of a new cluster":               {"e-0", []lease.Member{empty("e-0"), empty("e-1")}, actionForm, "", ""},
		"another of a new cluster":             {"e-1", []lease.Member{empty("e-0"), empty("e-1")}, actionWait, lease.ReasonJoining, ""},
		"another after the first":              {"e-1", []lease.Member{served("e-0", "c1", "u0"), empty("e-1")}, actionJoin, "", "c1"},
		"only member, lost":                    {"e-0", []lease.Member{served("e-0", "c1", "u0")}, actionRestore, lease.ReasonDataLost, ""},
		"only member, lost, says the operator": {"e-0", []lease.Member{{Name: "e-0", ClusterID: "c1"}}, actionRestore, lease.ReasonDataLost, ""},
		"only member, loss accepted": {"e-0", []lease.Member{{Name: "e-0", Holder: &lease.Holder{ID: "a", ClusterID: "c1"}, ClusterID: "c1", AcceptedLoss: "c1"}},
			actionForm, "", ""},
		"only member, another loss accepted": {"e-0", []lease.Member{{Name: "e-0", Holder: &lease.Holder{ID: "a", ClusterID: "c2"}, AcceptedLoss: "c1"}},
			actionRestore, lease.ReasonDataLost, ""},
		"first of three, lost": {"e-0", []lease.Member{served("e-0", "c1", "u0"), served("e-1", "c1", "u1"), served("e-2", "c1", "u2")}, actionJoin, "", "c1"},
		"first of three, Lease created again": {"e-0", []lease.Member{empty("e-0"), served("e-1", "c1", "u1"), served("e-2", "c1", "u2")},
			actionJoin, "", "c1"},
	} {
		got := decide(test.member, "e-0", test.leases)
		if got.action != test.want || got.why.Reason != test.reason || test.cluster != "" && !slices.Equal(got.clusters, []string{test.cluster}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestNotJoined checks that a member that never served has lost no data when it cannot join.
func TestNotJoined(t *testing.T) {
	for served, want := range map[bool]string{true: lease.ReasonDataLost, false: lease.ReasonJoining} {
		if got := (decision{served: served, clusters: []string{"c1"}}).notJoined("no majority answers"); got.Reason != want || !strings.Contains(got.Message, "c1") {
			t.Errorf("served %v: %+v", served, got)
		}
	}
}

func TestOutdatedAndInitialCluster(t *testing.T) {
	peers := []peer{{1, "e-0", []string{"https://e-0:2380"}}, {2, "e-1", []string{"https://e-1:2380"}}, {3, "", []string{"https://e-2:2380"}}}
	if got := outdated(peers, "e-1", "https://e-1:2380"); !slices.Equal(got, []uint64{2}) {
		t.Errorf("by name: %v", got)
	}
	if got := outdated(peers, "e-2", "https://e-2:2380"); !slices.Equal(got, []uint64{3}) {
		t.Errorf("by URL, added and not started: %v", got)
	}
	got, err := initialCluster(peers, 3, "e-2")
	if want := "e-0=https://e-0:2380,e-1=https://e-1:2380,e-2=https://e-2:2380"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := initialCluster(peers, 2, "e-1"); err == nil {
		t.Error("no error although another member has not started and has no name")
	}
}
