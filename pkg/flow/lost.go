package flow

import "slices"

// lost returns the bundles that a decision writes because they were lost: by hand, as a flow deletes nothing without a tombstone. Their
// ManagedResources do not exist though the last emission had them, or the Secrets that hold their revision do not. To write them is a repair, and not a
// change of the program. What they depend on, and does not exist either, belongs to the repair: without it they would not be applied.
func lost(owner Owner, live Live, decision Decision) []Key {
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
		case step.Action == ActionCreate && last.bundles.has(step.Key):
			add(step)
		case step.Action == ActionUpdate && len(live.missing(live.ManagedResources[step.Key])) > 0:
			add(step)
		}
	}
	return found
}
