package member

import "testing"

func TestSuccessor(t *testing.T) {
	of := func(names ...string) []peer {
		var voters []peer
		for i, name := range names {
			voters = append(voters, peer{id: uint64(i) + 1, name: name})
		}
		return voters
	}
	for name, test := range map[string]struct {
		member string
		voters []peer
		want   string
	}{
		"the last, which is replaced first":     {"etcd-main-2", of("etcd-main-0", "etcd-main-1", "etcd-main-2"), "etcd-main-0"},
		"the second, after the last":            {"etcd-main-1", of("etcd-main-2", "etcd-main-0", "etcd-main-1"), "etcd-main-2"},
		"the first, after all others":           {"etcd-main-0", of("etcd-main-1", "etcd-main-2", "etcd-main-0"), "etcd-main-2"},
		"more than ten":                         {"e-2", of("e-2", "e-9", "e-10"), "e-10"},
		"another one is a learner or is absent": {"e-1", of("e-0", "e-1"), "e-0"},
		"the only voter":                        {"e-0", of("e-0"), ""},
	} {
		if got := successor(test.member, test.voters); got.name != test.want {
			t.Errorf("%s: %q, want %q", name, got.name, test.want)
		}
	}
}
