package v1beta1

import "slices"

// CapabilityArchitecture is the capability that each profile with capabilities defines.
const CapabilityArchitecture = "architecture"

// ArchitecturesOf returns the sorted architectures of flavors. A flavor without an architecture has all defined ones.
func ArchitecturesOf(flavors []Capabilities, defined []CapabilityDefinition) []string {
	var all, found []string
	for _, capability := range defined {
		if capability.Name == CapabilityArchitecture {
			all = capability.Values
		}
	}
	for _, flavor := range flavors {
		if values := flavor[CapabilityArchitecture]; len(values) > 0 {
			found = append(found, values...)
		} else {
			found = append(found, all...)
		}
	}
	if len(flavors) == 0 {
		found = slices.Clone(all)
	}
	slices.Sort(found)
	return slices.Compact(found)
}
