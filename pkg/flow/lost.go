package flow

import "slices"

// repairs returns the bundles that a decision restores after a manual deletion, as a flow deletes nothing without a
// tombstone. Either their ManagedResource is being deleted, or is missing although the last emission included it, or the
// Secrets of their revision are missing. Writing them is a repair, not a rollout of a new version. Missing dependencies belong to the
// repair, because it could not be applied without them.
func repairs(owner Owner, live Live, decision Decision) []Key {
	last, steps := lastEmission(live.owned(owner)), map[Key]Step{}
	for _, step := range decision.Steps {
		steps[step.Key] = step
	}
	var found []Key
	var add func(step Step)
	add = func(step Step) {
		if slices.Contains(found, step.Key) {
			return
		}
		found = append(found, step.Key)
		for _, key := range dependencies(step.Key.Namespace, step.revision.bundle.Spec) {
			if needed, written := steps[key]; written && needed.Action == ActionCreate {
				add(needed)
			}
		}
	}
	for _, step := range decision.Steps {
		switch {
		case step.revision == nil: // of a bundle that the plan does not have
		case step.Action == ActionRelease:
			add(step)
		case step.Action == ActionCreate && last.bundles.has(step.Key):
			add(step)
		case step.Action == ActionUpdate && len(live.missing(live.ManagedResources[step.Key])) > 0:
			add(step)
		}
	}
	return found
}
