package etcd

import (
	"slices"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// TaskDefragment defragments the members, one after the other. Its value is the time at which it was due.
const TaskDefragment = "defragment"

// addDefragmentation adds the task to a plan if it is due, or the time at which it will be. What was missed is done once.
func (in Inputs) addDefragmentation(plan *flow.Plan) {
	text := in.Etcd.Spec.ETCD.DefragmentationSchedule
	if text == nil || *text == "" || in.Etcd.Spec.Replicas == 0 || len(in.served()) == 0 {
		return
	}
	schedule, err := cron.ParseStandard(*text)
	if err != nil {
		return // the plan says so
	}
	last := in.Etcd.CreationTimestamp.Time
	if entry, found := in.Ledger.Entry(TaskDefragment); found {
		last = entry.Time
	}
	due := schedule.Next(last.UTC())
	if due.IsZero() {
		return
	}
	if due.After(in.Now) {
		plan.Next = requeue.Earlier(plan.Next, due)
		return
	}
	// The task keeps its value while it is under way: members have been asked with it.
	plan.Tasks = append(plan.Tasks, flow.Task{Name: TaskDefragment, Value: due.Format(time.RFC3339)})
}

// defragmenting returns the member that was asked to defragment its database and has not finished; empty if there is none.
func (in Inputs) defragmenting() string {
	for _, member := range in.upTo(in.Etcd.Spec.Replicas) {
		if member.Defragment != "" && member.Defragment != member.Defragmented {
			return member.Name
		}
	}
	return ""
}

// nextToDefragment returns the member that is defragmented next for a value of the task, and whether one is under way. Followers come before
// the leader: while that one is busy, no write is acknowledged.
func nextToDefragment(members []lease.Member, value string) (next string, busy bool) {
	ordered := slices.Clone(members)
	slices.SortStableFunc(ordered, func(a, b lease.Member) int { return leads(a) - leads(b) })
	for _, member := range ordered {
		switch {
		case member.Defragmented == value:
		case member.Defragment == value:
			return member.Name, true
		default:
			return member.Name, false
		}
	}
	return "", false
}

func leads(member lease.Member) int {
	if member.Holder != nil && member.Holder.Leader {
		return 1
	}
	return 0
}
