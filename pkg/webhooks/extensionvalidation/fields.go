package extensionvalidation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	metadataPath = field.NewPath("metadata")
	specPath     = field.NewPath("spec")
)

// text is the value of a field.
type text struct {
	path  *field.Path
	value string
}

// required objects to fields that are empty.
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

// change is a field that must not change.
type change struct {
	path       *field.Path
	value, old string
}

// immutable objects to fields that have changed.
func immutable(changes ...change) field.ErrorList {
	var errs field.ErrorList
	for _, one := range changes {
		errs = append(errs, apivalidation.ValidateImmutableField(one.value, one.old, one.path)...)
	}
	return errs
}

// each checks the items of a list, until there are more errors than are reported: lists may be very long.
func each[T any](items []T, path *field.Path, check func(path *field.Path, item *T) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for i := range items {
		if errs = append(errs, check(path.Index(i), &items[i])...); len(errs) > maxErrors {
			break
		}
	}
	return errs
}

// located is the spec of the kinds that have a type, a region and a Secret with credentials, and nothing else that matters.
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
