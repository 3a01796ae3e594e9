package seed

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// deletion is the plan for a Seed that is being deleted. Its stages follow each other: what refers to the Seed is gone, its bucket is gone,
// its components are gone, extensions are uninstalled, what the components relied on is gone, no object of the seed's own kinds is left,
// the definitions of these kinds are gone. Then the resource-manager and the namespaces are left alone: the chart of gardenlet brought them.
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
	stages := in.stages()
	for stage, keys := range stages {
		if len(keys) == 0 {
			continue
		}
		if why := in.blocked(stage); why != "" {
			plan.Waits = append(plan.Waits, flow.Wait{Name: "deletion", Reason: why, Holds: in.Emitted, Deadline: in.deadline(), Code: corev1beta1.ErrorCleanupClusterResources})
			plan.Next = in.Now.Add(again)
			return plan
		}
		for _, key := range keys {
			in.remove(&plan, key)
		}
		for _, later := range stages[stage+1:] {
			if len(later) > 0 {
				plan.Waits = append(plan.Waits, flow.Wait{Name: waitOrder, Reason: "others are deleted first", Holds: later})
			}
		}
		return plan
	}
	return plan
}

// waitOrder is the wait of what is deleted later.
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

// stages returns the bundles that exist by the stage in which they are deleted.
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
			stage = stageLast // the resource-manager itself has an object of the kind VerticalPodAutoscaler
		case strings.HasPrefix(key.Name, prefixDefinitions):
			stage = stageDefinitions
		}
		stages[stage] = append(stages[stage], key)
	}
	return stages
}

// remove adds to a plan what deletes a bundle.
func (in Inputs) remove(plan *flow.Plan, key flow.Key) {
	if isRemoved(key) && in.Kept[key] {
		// The definitions survive their ManagedResource, unless their removal is declared by a revision of its own.
		bundle, err := in.declareRemoval(key)
		if err == nil {
			plan.Bundles = append(plan.Bundles, bundle)
			return
		}
		plan.Waits = append(plan.Waits, flow.Wait{Name: key.Name, Reason: err.Error(), Holds: []flow.Key{key}, Deadline: in.Now})
		return
	}
	plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key, Confirm: isExtension(key) || isRemoved(key)})
}

// isRemoved reports whether a bundle has definitions that are removed with the Seed.
func isRemoved(key flow.Key) bool {
	return strings.HasPrefix(key.Name, prefixDefinitions) && key.Name != definitionsManagedResources
}

// declareRemoval returns a bundle as it is deleted together with its objects.
func (in Inputs) declareRemoval(key flow.Key) (flow.Bundle, error) {
	bundle, err := in.bundle(part{name: key.Name, objects: in.definitions(key.Name), deletedAfter: after(key.Name)})
	if err != nil {
		return bundle, err
	}
	bundle.Spec.KeepObjects = ptr.To(false)
	bundle.Objects, err = removable(bundle.Objects)
	return bundle, err
}

// inUse says what refers to a Seed that is being deleted, and whether that has to be looked at again after a while; empty if nothing does.
func (in Inputs) inUse() (why string, poll bool) {
	switch {
	case in.Users == nil:
		return "what refers to the Seed is not known", true
	case len(*in.Users) > 0:
		return "these objects refer to the Seed, and have to be deleted or moved first: " + limited(*in.Users), true
	case in.Bucket != nil:
		return "BackupBucket " + in.Bucket.Name + " of the Seed is being deleted", false
	}
	return "", false
}

// blocked says why a stage cannot begin; empty if it can.
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
			return "objects are left in the seed whose kinds would be removed, and they with them: " + limited(*in.Instances)
		}
	}
	return ""
}

// limited joins names for a message.
func limited(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", and more"
}
