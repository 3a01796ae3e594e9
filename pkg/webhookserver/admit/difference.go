package admit

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// The operations of JSON patches (RFC 6902).
const (
	operationAdd     = "add"
	operationReplace = "replace"
	operationRemove  = "remove"
)

// difference returns the patch that applies the changes between before and after to raw. raw is the object as it was
// sent, before is the same object decoded into a type. Fields that the type does not know stay as they were sent. before
// and after are pointers. Values that are equal in both are set to zero.
func difference(raw []byte, before, after any) ([]jsonpatch.Operation, error) {
	if !dropEqual(reflect.ValueOf(before), reflect.ValueOf(after)) {
		return nil, nil
	}
	var sent map[string]any
	if err := json.Unmarshal(raw, &sent); err != nil {
		return nil, fmt.Errorf("compute the JSON patch: %w", err)
	}
	old, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return nil, fmt.Errorf("compute the JSON patch: %w", err)
	}
	changed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return nil, fmt.Errorf("compute the JSON patch: %w", err)
	}
	return fields(nil, "", sent, old, changed), nil
}

// dropEqual reports whether two values of the same type differ. It sets equal parts to zero in both, so that they are
// cheap to compare.
func dropEqual(a, b reflect.Value) (differ bool) {
	switch {
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		return dropEqual(a.Elem(), b.Elem())
	case a.Kind() == reflect.Struct && a.CanSet() && exported(a.Type()):
		for i := range a.NumField() {
			differ = dropEqual(a.Field(i), b.Field(i)) || differ
		}
		return differ
	case a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Struct && a.Len() <= b.Len() && a.Len() > 0:
		differ = a.Len() != b.Len()
		for i := range a.Len() {
			differ = dropEqual(a.Index(i), b.Index(i)) || differ
		}
		return differ
	case !reflect.DeepEqual(a.Interface(), b.Interface()):
		return true
	}
	if a.CanSet() && b.CanSet() {
		a.SetZero()
		b.SetZero()
	}
	return false
}

// exported reports whether all fields of a struct are exported. This is false for structs that represent a single value,
// such as a time.
func exported(t reflect.Type) bool {
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			return false
		}
	}
	return true
}

// values appends the operations that turn old into changed, at a path that exists in the sent object.
func values(patch []jsonpatch.Operation, path string, sent, old, changed any) []jsonpatch.Operation {
	switch changed := changed.(type) {
	case map[string]any:
		object, isObject := sent.(map[string]any)
		if before, is := old.(map[string]any); is && isObject {
			return fields(patch, path, object, before, changed)
		}
	case []any:
		elements, isList := sent.([]any)
		if before, is := old.([]any); is && isList && len(elements) == len(before) && len(changed) >= len(before) {
			return elementsOf(patch, path, elements, before, changed)
		}
	}
	if reflect.DeepEqual(old, changed) {
		return patch
	}
	// A list whose elements cannot be paired, because one was removed, is replaced.
	return append(patch, jsonpatch.NewOperation(operationReplace, path, put(old, changed)))
}

func fields(patch []jsonpatch.Operation, path string, sent, old, changed map[string]any) []jsonpatch.Operation {
	for _, key := range slices.Sorted(maps.Keys(old)) {
		_, kept := changed[key]
		if _, found := sent[key]; found && !kept {
			patch = append(patch, jsonpatch.NewOperation(operationRemove, below(path, key), nil))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		now, found := sent[key]
		before, had := old[key]
		switch {
		case found:
			patch = values(patch, below(path, key), now, before, changed[key])
		case !had || !reflect.DeepEqual(before, changed[key]):
			// The type may encode a field that was not sent. The patch then contains only the values that the mutation set.
			patch = append(patch, jsonpatch.NewOperation(operationAdd, below(path, key), put(before, changed[key])))
		}
	}
	return patch
}

func elementsOf(patch []jsonpatch.Operation, path string, sent, old, changed []any) []jsonpatch.Operation {
	for i := range old {
		patch = values(patch, below(path, strconv.Itoa(i)), sent[i], old[i], changed[i])
	}
	for i := len(old); i < len(changed); i++ {
		patch = append(patch, jsonpatch.NewOperation(operationAdd, below(path, strconv.Itoa(i)), changed[i]))
	}
	return patch
}

// put returns a value without the fields that are unchanged, which are those that the type encodes even if they are
// empty.
func put(before, value any) any {
	old, isObject := before.(map[string]any)
	changed, is := value.(map[string]any)
	if !is || !isObject {
		return value
	}
	result := map[string]any{}
	for key, one := range changed {
		if earlier, had := old[key]; !had || !reflect.DeepEqual(earlier, one) {
			result[key] = put(earlier, one)
		}
	}
	return result
}

// escape escapes a key for use in a JSON pointer (RFC 6901).
var escape = strings.NewReplacer("~", "~0", "/", "~1")

// below returns the path of a field or element below a path.
func below(path, key string) string { return path + "/" + escape.Replace(key) }
