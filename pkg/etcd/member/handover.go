package member

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// handOverTimeout is how long the member that stops waits for another one to lead. etcd then chooses one itself.
const handOverTimeout = 2 * time.Second

// handOver has another member lead if this one does. Each change of the leader makes writes wait, and can lose one that is under way: so the one is chosen
// with which a rollout changes the leader least often.
func (m *Member) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverTimeout)
	defer cancel()
	status, err := m.etcd.Status(ctx, m.localURL())
	if err != nil || status.Leader != status.Header.MemberId {
		return
	}
	list, err := m.etcd.MemberList(ctx)
	if err != nil {
		return
	}
	var voters []peer
	for _, each := range list.Members {
		if !each.IsLearner {
			voters = append(voters, peer{id: each.ID, name: each.Name})
		}
	}
	next := successor(m.name, voters)
	if next.id == 0 {
		return
	}
	if _, err := m.etcd.MoveLeader(ctx, next.id); err != nil {
		m.log.Warn("Could not hand over the leadership", "to", next.name, "error", err.Error())
		return
	}
	m.log.Info("Handed over the leadership", "to", next.name)
}

// successor returns the voter that is to lead instead of a member that stops; an empty one if it is the only voter. The operator replaces members from the
// last to the first: the last one that comes after the member was replaced before it, and the first one is replaced after all others.
func successor(name string, voters []peer) peer {
	others := slices.DeleteFunc(slices.Clone(voters), func(p peer) bool { return p.name == name })
	if len(others) == 0 {
		return peer{}
	}
	byOrdinal := func(a, b peer) int { return cmp.Compare(ordinal(a.name), ordinal(b.name)) }
	if last := slices.MaxFunc(others, byOrdinal); ordinal(last.name) > ordinal(name) {
		return last
	}
	return slices.MinFunc(others, byOrdinal)
}

// ordinal returns the number of a member in its StatefulSet; 0 if its name has none.
func ordinal(name string) int {
	number, _ := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	return number
}
