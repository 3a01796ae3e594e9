package garden

import (
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// deletion returns the plan for a Garden that is being deleted. As long as Seeds, Shoots or BackupEntries exist, nothing is deleted: their clusters
// would run on without an API that could delete them. Then everything is deleted in the order of the table of contents. The resource-manager of
// the runtime cluster and the definitions of kinds remain; see [pass.finish]. If the runtime cluster is also a seed, what gardenlet needs is handed
// over to it.
func deletion(in Inputs) flow.Plan {
	plan := flow.Plan{Deleting: true}
	if why := in.inUse(); why != "" {
		plan.Next = in.Now.Add(again)
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "garden-unused", Reason: why, Holds: in.Emitted, Deadline: in.Now, Code: corev1beta1.ErrorConfigurationProblem,
		})
		return plan
	}
	contents := in.contents()
	plan.Gone = contents.Gone()
	for _, key := range in.Emitted {
		if tombstone, released := in.released(key); released {
			plan.Tombstones = append(plan.Tombstones, tombstone)
			continue
		}
		plan.Tombstones = append(plan.Tombstones, contents.Tombstone(key))
	}
	return plan
}

// inUse returns what blocks the deletion of a Garden, empty if nothing does. A Garden whose API was never deployed has no users.
func (in Inputs) inUse() string {
	switch {
	case !in.Served || in.Unused:
		return ""
	case in.Users == nil:
		return "it is not known whether Seeds, Shoots or BackupEntries exist, because the virtual garden does not answer"
	case len(*in.Users) > 0:
		return "these objects of the virtual garden must be deleted first: " + limited(*in.Users)
	}
	return ""
}

// limited joins at most ten names for a message.
func limited(names []string) string {
	const most = 10
	names = slices.Sorted(slices.Values(names))
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", and more"
}
