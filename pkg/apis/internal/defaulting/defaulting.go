// Package defaulting has what the defaulting functions of the API groups share.
package defaulting

// Pointer sets an optional field that has no value.
func Pointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// Value sets a field that has its zero value.
func Value[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Object returns an optional object, which it creates if it is absent.
func Object[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}
