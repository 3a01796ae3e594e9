package shoot

import (
	"slices"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// deletion is the plan for a Shoot that is being deleted. What is in the shoot's own cluster goes first: its API server and resource-manager are
// needed for that, and are started if the shoot hibernates. Then the control plane goes, in the reverse order in which it came.
func deletion(in Inputs) flow.Plan {
	plan := flow.Plan{Deleting: true}
	inside := slices.ContainsFunc(in.Emitted, func(key flow.Key) bool { return key.Namespace == in.Namespace && isOfShoot(key.Name) })
	for _, key := range in.Emitted {
		if !inside || key.Namespace == in.Namespace && isOfShoot(key.Name) {
			plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key, Confirm: strings.HasPrefix(key.Name, "etcd-") && key.Namespace == in.Namespace})
		}
	}
	if !inside {
		return plan
	}
	for _, part := range in.contents() {
		switch {
		case isOfShoot(part.name), !in.emitted(part.name):
		case part.unknown != "" && !in.starts(part.name):
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

// starts reports whether a part has to be brought up for the deletion: without it nothing in the cluster can be deleted.
func (in Inputs) starts(name string) bool {
	return slices.Contains([]string{bundleEtcdMain, bundleEtcdEvents, bundleServer, bundleManager}, name)
}
