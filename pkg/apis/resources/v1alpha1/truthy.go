package v1alpha1

import "strconv"

// Truthy reports whether the value of an annotation or label means yes: 1, t, T, true, TRUE or True (the concept document of
// gardener-resource-manager, "Ignoring Updates"). Anything else means no.
func Truthy(value string) bool {
	if value == "" {
		return false // most have none, and the error of the parser is an allocation
	}
	parsed, err := strconv.ParseBool(value)
	return err == nil && parsed
}
