package etcd

import (
	"slices"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// TaskDefragment defragments the members one after the other. Its value is its scheduled time.
const TaskDefragment = "defragment"

// addDefragmentation adds the task to a plan if it is due, or its next scheduled time otherwise. Missed schedules are
// made up for once.
func (in Inputs) addDefragmentation(plan *flow.Plan) {
	text := in.Etcd.Spec.ETCD.DefragmentationSchedule
	if text == nil || *text == "" || in.Etcd.Spec.Replicas == 0 || len(in.served()) == 0 {
		return
	}
	schedule, err := cron.ParseStandard(*text)
	if err != nil {
		return // the plan reports the error
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
	// The task keeps its value while it runs, because members were requested with it.
	plan.Tasks = append(plan.Tasks, flow.Task{Name: TaskDefragment, Value: due.Format(time.RFC3339)})
}

// defragmenting returns the member with an unfinished defragmentation request, empty if there is none.
func (in Inputs) defragmenting() string {
	for _, member := range in.upTo(in.Etcd.Spec.Replicas) {
		if member.Defragment != "" && member.Defragment != member.Defragmented {
			return member.Name
		}
	}
	return ""
}

// nextToDefragment returns the member to defragment next for a value of the task, and whether its defragmentation is
// already running. Followers come before the leader, because no write is acknowledged while the leader is defragmented.
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
