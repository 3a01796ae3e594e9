package v1alpha1

import "strconv"

// Truthy reports whether the value of an annotation or label is true: 1, t, T, true, TRUE or True (the concept document
// of gardener-resource-manager, "Ignoring Updates"). All other values are false.
func Truthy(value string) bool {
	if value == "" {
		return false // the common case; ParseBool would allocate an error
	}
	parsed, err := strconv.ParseBool(value)
	return err == nil && parsed
}
