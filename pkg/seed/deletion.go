package seed

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// deletion returns the plan for a Seed that is being deleted. It proceeds in stages: all references to the Seed are
// removed, its bucket is deleted, its components are deleted, extensions are uninstalled, the base of the components is
// deleted, no objects of the seed's own kinds remain, and the definitions of these kinds are deleted. Only the
// resource-manager and the namespaces remain, which the gardenlet chart installed.
func deletion(in Inputs) flow.Plan {
	plan := flow.Plan{Deleting: true}
	if why, next := in.inUse(); why != "" {
		wait := flow.Wait{Name: "seed-unused", Reason: why, Holds: in.Emitted}
		if next {
			plan.Next = in.Now.Add(again)
		}
		plan.Waits = append(plan.Waits, wait)
		return plan
	}
	stages, contents := in.stages(), in.contents()
	plan.Gone = contents.Gone()
	for stage, keys := range stages {
		if len(keys) == 0 {
			continue
		}
		if why := in.blocked(stage); why != "" {
			plan.Waits = append(plan.Waits, flow.Wait{
				Name: "deletion", Reason: why, Holds: in.Emitted, Deadline: in.deadline(), Code: corev1beta1.ErrorCleanupClusterResources,
			})
			plan.Next = in.Now.Add(again)
			return plan
		}
		for _, key := range keys {
			in.remove(&plan, key)
		}
		for _, later := range stages[stage+1:] {
			if len(later) > 0 {
				plan.Waits = append(plan.Waits, flow.Wait{Name: waitOrder, Reason: "other bundles are deleted first", Holds: later})
			}
		}
		return plan
	}
	return plan
}

// waitOrder is the name of the wait that holds the bundles of later stages.
const waitOrder = "deletion-order"

// The stages in which bundles are deleted.
const (
	stageComponents = iota
	stageBase
	stageDefinitions
	stageResourceManager
	stageLast
	stageCount
)

// stages returns the existing bundles by deletion stage.
func (in Inputs) stages() [stageCount][]flow.Key {
	var stages [stageCount][]flow.Key
	for _, key := range in.Emitted {
		stage := stageComponents
		switch {
		case key.Name == bundleSystem, key.Name == in.referencesBundle():
			stage = stageBase
		case key.Name == bundleResourceManager:
			stage = stageResourceManager
		case key.Name == bundleNamespaces, key.Name == definitionsManagedResources, key.Name == definitionsAutoscaling:
			stage = stageLast // the resource-manager itself has a VerticalPodAutoscaler
		case strings.HasPrefix(key.Name, prefixDefinitions):
			stage = stageDefinitions
		}
		stages[stage] = append(stages[stage], key)
	}
	return stages
}

// remove adds the deletion of a bundle to a plan.
func (in Inputs) remove(plan *flow.Plan, key flow.Key) {
	if isRemoved(key) && in.Kept[key] {
		// The definitions are kept after the deletion of their ManagedResource, unless a separate revision allows their
		// deletion first.
		bundle, err := in.declareRemoval(key)
		if err == nil {
			plan.Bundles = append(plan.Bundles, bundle)
			return
		}
		plan.Waits = append(plan.Waits, flow.Wait{Name: key.Name, Reason: err.Error(), Holds: []flow.Key{key}, Deadline: in.Now})
		return
	}
	plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key, Confirm: isExtension(key) || isRemoved(key) || key.Name == bundleRecord})
}

// isRemoved reports whether a bundle contains definitions that are deleted with the Seed.
func isRemoved(key flow.Key) bool {
	return strings.HasPrefix(key.Name, prefixDefinitions) && key.Name != definitionsManagedResources
}

// declareRemoval returns a revision of a bundle that is deleted together with its objects.
func (in Inputs) declareRemoval(key flow.Key) (flow.Bundle, error) {
	contents := in.contents()
	part, _ := contents.Part(key.Name)
	part.Adjust = nil
	bundle, err := contents.Bundle(part)
	if err != nil {
		return bundle, err
	}
	bundle.Spec.KeepObjects = ptr.To(false)
	bundle.Objects, err = removable(bundle.Objects)
	return bundle, err
}

// inUse returns what blocks the deletion of a Seed, empty if nothing does. poll is set if no watch reports when this
// changes.
func (in Inputs) inUse() (why string, poll bool) {
	switch {
	case in.Users == nil:
		return "the objects that refer to the Seed are not known", true
	case len(*in.Users) > 0:
		return "these objects refer to the Seed and must be deleted or moved first: " + limited(*in.Users), true
	case in.Bucket != nil:
		return "BackupBucket " + in.Bucket.Name + " of the Seed is being deleted", false
	}
	return "", false
}

// blocked returns why a stage cannot start, empty if it can.
func (in Inputs) blocked(stage int) string {
	if stage >= stageBase {
		if in.Extensions == nil {
			return "the extensions that are installed in the seed are not known"
		}
		var names []string
		for _, installation := range in.Extensions.Installations {
			names = append(names, "ControllerInstallation "+installation.Name)
		}
		slices.Sort(names)
		if len(names) > 0 {
			return "extensions are installed in the seed: " + limited(names)
		}
	}
	if stage == stageDefinitions {
		if in.Instances == nil {
			return "the objects of the seed's own kinds are not known"
		}
		if len(*in.Instances) > 0 {
			return "objects of kinds that would be deleted still exist in the seed: " + limited(*in.Instances)
		}
	}
	return ""
}

// limited joins at most ten names for a message.
func limited(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", and more"
}
