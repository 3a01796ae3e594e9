package extensionvalidation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	metadataPath = field.NewPath("metadata")
	specPath     = field.NewPath("spec")
)

// text is a field with a string value.
type text struct {
	path  *field.Path
	value string
}

// required returns an error for each empty field.
func required(fields ...text) field.ErrorList {
	var errs field.ErrorList
	for _, one := range fields {
		if one.value == "" {
			errs = append(errs, missing(one.path))
		}
	}
	return errs
}

func missing(path *field.Path) *field.Error { return field.Required(path, "field is required") }

// change is the new and the old value of an immutable field.
type change struct {
	path       *field.Path
	value, old string
}

// immutable returns an error for each field that changed.
func immutable(changes ...change) field.ErrorList {
	var errs field.ErrorList
	for _, one := range changes {
		errs = append(errs, apivalidation.ValidateImmutableField(one.value, one.old, one.path)...)
	}
	return errs
}

// each checks the items of a list. It stops when there are more errors than are reported, because lists may be very long.
func each[T any](items []T, path *field.Path, check func(path *field.Path, item *T) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for i := range items {
		if errs = append(errs, check(path.Index(i), &items[i])...); len(errs) > maxErrors {
			break
		}
	}
	return errs
}

// located is the spec of kinds that are validated only by type, region and the reference to a Secret with credentials.
type located struct {
	Type      string          `json:"type"`
	Region    string          `json:"region"`
	SecretRef secretReference `json:"secretRef"`
}

func (l *located) check() field.ErrorList { return checkLocated(l.Type, l.Region, l.SecretRef) }

func checkLocated(kind, region string, secret secretReference) field.ErrorList {
	return required(
		text{specPath.Child("type"), kind},
		text{specPath.Child("region"), region},
		text{specPath.Child("secretRef", "name"), secret.Name},
	)
}

func (l *located) compare(old *located) field.ErrorList {
	return immutable(
		change{specPath.Child("type"), l.Type, old.Type},
		change{specPath.Child("region"), l.Region, old.Region},
	)
}
