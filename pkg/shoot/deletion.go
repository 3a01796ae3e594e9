package shoot

import (
	"slices"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// deletion returns the plan for a Shoot that is being deleted. It first deletes users' objects in the shoot cluster, then
// the flow's objects there. Both require the API server and the resource-manager, which are started if the shoot
// hibernates. Last, it deletes the control plane, in the order of the table of contents.
func deletion(in Inputs) flow.Plan {
	if in.forced() {
		return forcedDeletion(in)
	}
	if len(in.Bastions) > 0 {
		return in.awaitBastions()
	}
	plan, parts := flow.Plan{Deleting: true, Tasks: in.cleanUpTasks()}, in.contents()
	cleans := len(plan.Tasks) > 0
	inside := func(key flow.Key) bool { return key.Namespace == in.Namespace && isOfShoot(key.Name) }
	contents := slices.ContainsFunc(in.Emitted, inside)
	var kept []flow.Key
	for _, key := range in.Emitted {
		switch {
		case cleans && inside(key):
			kept = append(kept, key)
		case !cleans && (!contents || inside(key)):
			plan.Tombstones = append(plan.Tombstones, in.tombstone(parts, key))
		}
	}
	if len(kept) > 0 {
		plan.Waits = append(plan.Waits, flow.Wait{Name: waitOrder, Reason: "users' objects in the cluster are deleted first", Holds: kept})
	}
	if !cleans && !contents {
		in.addLost(&plan, parts)
		return plan
	}
	for _, part := range parts {
		if in.worked(part.name) && in.starts(part.name, cleans) {
			plan.Recreated = append(plan.Recreated, in.key(part.name))
		}
		switch {
		case isOfShoot(part.name), !in.emitted(part.name) && !slices.Contains(plan.Recreated, in.key(part.name)):
		case in.Unapplied[part.name]:
			// Otherwise its dependencies could become ready, and its objects would be created only to be deleted.
			plan.Tombstones = append(plan.Tombstones, in.tombstone(parts, in.key(part.name)))
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
	needed := []string{bundleAPIServerService, bundleEtcdMain, bundleEtcdEvents, bundleAPIServer, bundleResourceManager}
	return slices.Contains(needed, name) || cleans && name == bundleControllerManager
}

// addLost adds the bundles of etcd that were deleted by hand and kept their objects. Only their ManagedResources can confirm
// the deletion of these objects. The deletion itself does not delete them as long as the API server exists.
func (in Inputs) addLost(plan *flow.Plan, parts []part) {
	for _, part := range parts {
		isEtcd := part.name == bundleEtcdMain || part.name == bundleEtcdEvents
		if isEtcd && !in.emitted(part.name) && in.emitted(bundleAPIServer) && in.worked(part.name) {
			plan.Recreated = append(plan.Recreated, in.key(part.name))
			in.add(plan, part)
		}
	}
}

// worked reports whether a program must have run: the resource-manager gets its token from the API server, and requests
// those of the other programs.
func (in Inputs) worked(name string) bool {
	account := kubecontrollermanager.Name
	if slices.Contains([]string{bundleAPIServerService, bundleEtcdMain, bundleEtcdEvents, bundleAPIServer}, name) {
		account = resourcemanager.Account
	}
	_, found := in.Tokens[accessSecret(account)]
	return found
}

// tombstone returns the tombstone of an existing bundle in the deletion of the whole Shoot. Its order is that of the
// table of contents. It does not depend on what the bundle recorded, for example while the Shoot hibernated. The namespace
// is deleted last, after bundles that the table does not have, too.
func (in Inputs) tombstone(parts []part, key flow.Key) flow.Tombstone {
	tombstone := flow.Tombstone{Key: key, Force: in.forced()}
	for _, part := range parts {
		if in.key(part.name) == key {
			tombstone.Confirm, tombstone.After = part.confirmed, in.deletedBefore(parts, part)
		}
	}
	if key == in.key(bundleNamespace) {
		tombstone.After = slices.DeleteFunc(slices.Clone(in.Emitted), func(other flow.Key) bool { return other == key })
	}
	return tombstone
}

// deletedBefore returns the bundles that must be deleted before a part, if the whole Shoot is deleted.
func (in Inputs) deletedBefore(parts []part, of part) []flow.Key {
	before := of.deletedAfter
	if before == nil {
		for _, part := range parts {
			if slices.ContainsFunc(part.needs, func(need resourcesv1alpha1.Dependency) bool { return need.Name == of.name }) {
				before = append(before, part.name)
			}
		}
	}
	return in.keys(slices.Concat(before, of.outlives)...)
}
