package shoot

import (
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
)

// deletion returns the plan for a Shoot that is being deleted. It first deletes users' objects in the shoot cluster, then
// the machines and the flow's objects there. Both require the API server and the resource-manager, which are started if the shoot
// hibernates. Last, it deletes the control plane, in the order of the table of contents.
func deletion(in Inputs) flow.Plan {
	if in.forced() {
		return forcedDeletion(in)
	}
	if len(in.Bastions) > 0 {
		return in.awaitBastions()
	}
	plan, contents := flow.Plan{Deleting: true, Tasks: in.cleanUpTasks()}, in.contents()
	plan.Gone = contents.Gone()
	cleans := len(plan.Tasks) > 0
	inside := func(key flow.Key) bool { return key.Namespace == in.Namespace && isOfShoot(key.Name) }
	inShoot := slices.ContainsFunc(in.Emitted, inside)
	var kept []flow.Key
	for _, key := range in.Emitted {
		switch {
		case cleans && inside(key):
			kept = append(kept, key)
		case !cleans && (!inShoot || inside(key) || isMachine(key.Name)):
			plan.Tombstones = append(plan.Tombstones, in.tombstone(contents, key))
		}
	}
	if len(kept) > 0 {
		plan.Waits = append(plan.Waits, flow.Wait{Name: waitOrder, Reason: "users' objects in the cluster are deleted first", Holds: kept})
	}
	if !cleans && !inShoot {
		in.addLost(&plan, contents)
		return plan
	}
	if !cleans {
		in.limitInCluster(&plan)
	}
	for _, part := range contents.Parts {
		if in.worked(part.Name) && in.starts(part.Name, cleans) {
			plan.Recreated = append(plan.Recreated, in.key(part.Name))
		}
		switch {
		case part.Target == table.Shoot, !cleans && isMachine(part.Name), !in.emitted(part.Name) && !slices.Contains(plan.Recreated, in.key(part.Name)):
		case in.Unapplied[part.Name]:
			// Otherwise its dependencies could become ready, and its objects would be created only to be deleted.
			plan.Tombstones = append(plan.Tombstones, in.tombstone(contents, in.key(part.Name)))
		case contents.Unknown(part) != "" && !in.starts(part.Name, cleans):
			// Retain its revision, because it is deleted later anyway.
			plan.Waits = append(plan.Waits, flow.Wait{
				Name: waitOrder, Reason: "objects in the cluster are deleted first", Holds: []flow.Key{in.key(part.Name)},
			})
		default:
			contents.Add(&plan, part)
		}
	}
	return plan
}

// waitOrder is the wait of bundles that are deleted later.
const waitOrder = "deletion-order"

// waitInCluster is the wait for the flow's own objects in the cluster, once their deletion has taken too long.
const waitInCluster = "objects-in-cluster"

// limitInCluster makes it an error if the flow's own objects in the cluster are not deleted in time after the users' objects, for example
// because the shoot's resource-manager does not run. Without an error, the deletion could neither end nor be forced.
func (in Inputs) limitInCluster(plan *flow.Plan) {
	deadline := in.cleanUpSince().Add(cleanUpTimeout)
	if in.Now.Before(deadline) {
		plan.Next = deadline
		return
	}
	var left []string
	for _, tombstone := range plan.Tombstones {
		left = append(left, tombstone.Name)
	}
	plan.Waits = append(plan.Waits, flow.Wait{
		Name: waitInCluster, Deadline: deadline, Code: corev1beta1.ErrorCleanupClusterResources,
		Reason: "the resource-manager of the Shoot has not deleted the objects in the cluster of the ManagedResources " + strings.Join(left, ", ") +
			": see whether " + resourcemanager.Name + " runs, or force the deletion",
	})
}

// starts reports whether a part must be started for the deletion, because nothing in the cluster can be deleted without
// it. The deletion of users' objects also requires controllers.
func (in Inputs) starts(name string, cleans bool) bool {
	needed := []string{bundleAPIServerService, bundleEtcdMain, bundleEtcdEvents, bundleAPIServer, bundleResourceManager}
	return slices.Contains(needed, name) || cleans && name == bundleControllerManager
}

// addLost adds the bundles of etcd that were deleted by hand and kept their objects. Only their ManagedResources can confirm
// the deletion of these objects. The deletion itself does not delete them as long as the API server exists.
func (in Inputs) addLost(plan *flow.Plan, contents table.Table) {
	for _, part := range contents.Parts {
		isEtcd := part.Name == bundleEtcdMain || part.Name == bundleEtcdEvents
		if isEtcd && !in.emitted(part.Name) && in.emitted(bundleAPIServer) && in.worked(part.Name) {
			plan.Recreated = append(plan.Recreated, in.key(part.Name))
			contents.Add(plan, part)
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

// tombstone returns the tombstone of an existing bundle in the deletion of the whole Shoot.
func (in Inputs) tombstone(contents table.Table, key flow.Key) flow.Tombstone {
	tombstone := contents.Tombstone(key)
	tombstone.Force = in.forced()
	return tombstone
}
