package v1alpha1

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
)

// strictDecoder compares a tree with a Go type. A plain decoder stops at the first value of a wrong type and then does
// not report unknown fields. strictDecoder finds all problems and removes the affected values from the tree, so that
// the rest can be decoded and validated in the same run.
type strictDecoder struct {
	unknown  field.ErrorList // fields that do not exist
	unusable field.ErrorList // values that do not fit the type of their field
}

// prune removes unusable parts of a value, and reports whether the rest can be decoded into type t.
func (d *strictDecoder) prune(value any, t reflect.Type, path *field.Path) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[stdjson.Unmarshaler]()) {
		return d.pruneScalar(value, t, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		return d.pruneObject(value, t, path)
	case reflect.Map:
		return d.pruneMap(value, t, path)
	case reflect.Slice:
		return d.pruneList(value, t, path)
	default:
		return d.pruneScalar(value, t, path)
	}
}

func (d *strictDecoder) pruneObject(value any, t reflect.Type, path *field.Path) bool {
	fields := jsonFields(t)
	object, ok := value.(map[string]any)
	if !ok {
		return d.reject(path, value, "must be a mapping with any of the fields "+joinedNames(fields))
	}
	for key, child := range object {
		childType, known := fields[key]
		switch {
		case !known:
			hint := unknownFieldHint(path.Child(key).String(), key, fields)
			d.unknown = append(d.unknown, field.Forbidden(path.Child(key), hint))
			delete(object, key)
		case child == nil, !d.prune(child, childType, path.Child(key)): // null means "not set", as everywhere in Kubernetes
			delete(object, key)
		}
	}
	return true
}

// pruneMap keeps null values: a label without a value decodes to the empty string.
func (d *strictDecoder) pruneMap(value any, t reflect.Type, path *field.Path) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return d.reject(path, value, "must be a mapping")
	}
	for key, child := range object {
		if child != nil && !d.prune(child, t.Elem(), path.Key(key)) {
			delete(object, key)
		}
	}
	return true
}

// pruneList sets an unusable element to null, so that the others keep their index in later messages.
func (d *strictDecoder) pruneList(value any, t reflect.Type, path *field.Path) bool {
	list, ok := value.([]any)
	if !ok {
		return d.reject(path, value, "must be a list")
	}
	for i, child := range list {
		if !d.prune(child, t.Elem(), path.Index(i)) {
			list[i] = nil
		}
	}
	return true
}

func (d *strictDecoder) pruneScalar(value any, t reflect.Type, path *field.Path) bool {
	data, err := stdjson.Marshal(value)
	if err == nil {
		err = json.UnmarshalCaseSensitivePreserveInts(data, reflect.New(t).Interface())
	}
	if err != nil || value == nil { // null decodes into every type, but is not allowed as an element of a list
		return d.reject(path, value, expectation(t))
	}
	return true
}

// reject reports an unusable value. It always returns false, as a result for prune.
func (d *strictDecoder) reject(path *field.Path, value any, message string) bool {
	switch value.(type) {
	case nil:
		value, message = field.OmitValueType{}, "is null, "+message
	case map[string]any:
		value, message = field.OmitValueType{}, "is a mapping, "+message
	case []any:
		value, message = field.OmitValueType{}, "is a list, "+message
	}
	d.unusable = append(d.unusable, field.TypeInvalid(path, value, message))
	return false
}

// covers reports whether a field had an unusable value. Validation errors about such a field are wrong, because the
// value was removed.
func (d *strictDecoder) covers(path string) bool {
	return slices.ContainsFunc(d.unusable, func(err *field.Error) bool {
		return path == err.Field || strings.HasPrefix(path, err.Field+".") || strings.HasPrefix(path, err.Field+"[")
	})
}

// expectation describes the values that a scalar field accepts.
func expectation(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return "must be a duration with its unit, such as 30s or 1h30m"
	case reflect.TypeFor[resource.Quantity]():
		return "must be a quantity, such as 64Mi"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "must be true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("must be a whole number of at most %d bits", t.Bits())
	case reflect.Float32:
		return "must be a number"
	default:
		return "must be a string; put it in quotes"
	}
}

// jsonFields returns the types of a struct's fields by JSON name, including those of embedded structs.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		structField := t.Field(i)
		name, _, _ := strings.Cut(structField.Tag.Get("json"), ",")
		if structField.Anonymous && name == "" {
			maps.Copy(fields, jsonFields(structField.Type))
			continue
		}
		fields[name] = structField.Type
	}
	return fields
}

func joinedNames(fields map[string]reflect.Type) string {
	return strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
}
