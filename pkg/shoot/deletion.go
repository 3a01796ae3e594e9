package shoot

import (
	"slices"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// deletion returns the plan for a Shoot that is being deleted. It first deletes users' objects in the shoot cluster, then
// the flow's objects there. Both require the API server and the resource-manager, which are started if the shoot
// hibernates. Last, it deletes the control plane in the reverse order of its creation.
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
		plan.Waits = append(plan.Waits, flow.Wait{Name: waitOrder, Reason: "users' objects in the cluster are deleted first", Holds: kept})
	}
	if !cleans && !contents {
		return plan
	}
	for _, part := range in.contents() {
		switch {
		case isOfShoot(part.name), !in.emitted(part.name):
		case part.unknown != "" && !in.starts(part.name, cleans):
			// Retain its revision, because it is deleted later anyway.
			plan.Waits = append(plan.Waits, flow.Wait{
				Name: waitOrder, Reason: "objects in the cluster are deleted first", Holds: []flow.Key{in.key(part.name)},
			})
		default:
			in.add(&plan, part)
		}
	}
	return plan
}

// waitOrder is the wait of bundles that are deleted later.
const waitOrder = "deletion-order"

// starts reports whether a part must be started for the deletion, because nothing in the cluster can be deleted without
// it. The deletion of users' objects also requires controllers.
func (in Inputs) starts(name string, cleans bool) bool {
	needed := []string{bundleEtcdMain, bundleEtcdEvents, bundleAPIServer, bundleResourceManager}
	return slices.Contains(needed, name) || cleans && name == bundleControllerManager
}

// confirms reports whether the deletion of a bundle's objects must be confirmed first, as the guards of their kinds require.
func (in Inputs) confirms(key flow.Key) bool {
	return key.Namespace == in.Namespace && slices.ContainsFunc([]string{"etcd-", prefixExtension, prefixRecord}, func(prefix string) bool {
		return strings.HasPrefix(key.Name, prefix)
	})
}
