package faults

import "slices"

// disturbance is a site and the faults for it, one run for each.
type disturbance struct {
	site   site
	faults []fault
}

// remembered are the runs that have found a defect. They are part of every short run.
func remembered() map[string][]string {
	return map[string][]string{
		// The objects stayed claimed, and the other ManagedResource waited for them.
		"move-back/patch_managedresources.status_b_1": {"timeout-after"},
		// The replacement was not tried again: the error said that the update was invalid, as well.
		"replace/delete_configmaps_fixed_1": {"failed-500", "timeout-before"},
	}
}

// plansFor returns what is injected where in a scenario. A full run has every fault at every site. A short one has one fault at each
// site, another one at each, and takes calls that differ in the object alone for the same.
func plansFor(scenario string, visited []site, full bool) []disturbance {
	var plans []disturbance
	seen := map[string]bool{}
	for _, site := range visited {
		faults := faultsOf(site.call)
		asBefore := remembered()[scenario+"/"+site.String()]
		switch {
		case !site.enumerated():
			continue
		case full:
		case len(asBefore) > 0:
			faults = slices.DeleteFunc(faults, func(f fault) bool { return !slices.Contains(asBefore, f.name) })
		case seen[site.role()]:
			continue
		default:
			faults = faults[len(plans)%len(faults):][:1]
		}
		seen[site.role()] = true
		plans = append(plans, disturbance{site, faults})
	}
	return plans
}
