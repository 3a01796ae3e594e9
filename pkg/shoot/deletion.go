package shoot

import (
	"slices"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// deletion is the plan for a Shoot that is being deleted. What users have in the shoot's own cluster goes first, then what the flow has there: its API
// server and resource-manager are needed for that, and are started if the shoot hibernates. Then the control plane goes, in the reverse order in which it
// came.
func deletion(in Inputs) flow.Plan {
	if in.forced() {
		return forcedDeletion(in)
	}
	if len(in.Bastions) > 0 {
		return in.awaitBastions()
	}
	plan := flow.Plan{Deleting: true, Tasks: in.cleanUpTasks()}
	cleans := len(plan.Tasks) > 0
	inside := func(key flow.Key) bool { return key.Namespace == in.Namespace && isOfShoot(key.Name) }
	contents := slices.ContainsFunc(in.Emitted, inside)
	var kept []flow.Key
	for _, key := range in.Emitted {
		switch {
		case cleans && inside(key):
			kept = append(kept, key)
		case !cleans && (!contents || inside(key)):
			plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key, Confirm: in.confirms(key)})
		}
	}
	if len(kept) > 0 {
		plan.Waits = append(plan.Waits, flow.Wait{Name: waitOrder, Reason: "what users have in the cluster is deleted first", Holds: kept})
	}
	if !cleans && !contents {
		return plan
	}
	for _, part := range in.contents() {
		switch {
		case isOfShoot(part.name), !in.emitted(part.name):
		case part.unknown != "" && !in.starts(part.name, cleans):
			// It keeps its revision: it is deleted later, and needs nothing new until then.
			plan.Waits = append(plan.Waits, flow.Wait{Name: waitOrder, Reason: "what is in the cluster is deleted first", Holds: []flow.Key{in.key(part.name)}})
		default:
			in.add(&plan, part)
		}
	}
	return plan
}

// waitOrder is the wait of what is deleted later.
const waitOrder = "deletion-order"

// starts reports whether a part has to be brought up for the deletion: without it nothing in the cluster can be deleted. What users have there needs the
// controllers, too.
func (in Inputs) starts(name string, cleans bool) bool {
	return slices.Contains([]string{bundleEtcdMain, bundleEtcdEvents, bundleServer, bundleManager}, name) || cleans && name == bundleControl
}

// confirms reports whether the objects of a bundle have to confirm their deletion before, as the guards of their kinds ask for.
func (in Inputs) confirms(key flow.Key) bool {
	return key.Namespace == in.Namespace && slices.ContainsFunc([]string{"etcd-", prefixExtension, prefixRecord}, func(prefix string) bool {
		return strings.HasPrefix(key.Name, prefix)
	})
}
