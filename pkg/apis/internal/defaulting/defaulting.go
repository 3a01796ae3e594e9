// Package defaulting has what the defaulting functions of the API groups share.
package defaulting

import (
	"k8s.io/apimachinery/pkg/runtime"
)

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

// Register makes a scheme set the defaults of a kind.
func Register[T runtime.Object](scheme *runtime.Scheme, object T, set func(T)) {
	scheme.AddTypeDefaultingFunc(object, func(object any) {
		if typed, is := object.(T); is {
			set(typed)
		}
	})
}
