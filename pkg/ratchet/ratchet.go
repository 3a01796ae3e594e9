// Package ratchet drops errors of validation that an update does not cause, so that a rule that is newer than a stored object
// does not prevent other changes of it.
package ratchet

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Errors returns the errors of an update that its changes cause. updated and stored are the objects. found are the errors of the new object, and had are those
// of the stored one, which a rule that is newer than the object rejects. An error is dropped if the stored object has the
// same one and the value of its field is the same.
func Errors(updated, stored any, found, had field.ErrorList) field.ErrorList {
	if len(found) == 0 || len(had) == 0 {
		return found
	}
	now, before := fieldsOf(updated), fieldsOf(stored)
	return slices.DeleteFunc(found, func(err *field.Error) bool {
		paths := counterparts(steps(err.Field), now, before, "")
		return slices.ContainsFunc(had, func(old *field.Error) bool {
			value, same := paths[normal(old.Field)]
			return same && old.Type == err.Type && old.Detail == err.Detail && equalValues(old.BadValue, err.BadValue) &&
				reflect.DeepEqual(value, valueAt(steps(err.Field), now))
		})
	})
}

// fieldsOf returns the fields of an object as clients see them. It returns nil if they cannot be encoded.
func fieldsOf(object any) any {
	var fields any
	encoded, err := json.Marshal(object)
	if err != nil || json.Unmarshal(encoded, &fields) != nil {
		return nil
	}
	return fields
}

func equalValues(a, b any) bool { return reflect.DeepEqual(fieldsOf(a), fieldsOf(b)) }

// steps splits the path of an error into the names of fields, the keys of maps and the indexes of lists.
func steps(path string) []string {
	var all []string
	for path != "" {
		if key, is := strings.CutPrefix(path, "["); is {
			key, path, _ = strings.Cut(key, "]")
			all, path = append(all, key), strings.TrimPrefix(path, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(all, path)
		}
		all = append(all, path[:end])
		path = strings.TrimPrefix(path[end:], ".")
	}
	return all
}

func normal(path string) string { return strings.Join(steps(path), "\n") }

func valueAt(path []string, at any) any {
	for _, step := range path {
		switch typed := at.(type) {
		case map[string]any:
			at = typed[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(typed) {
				return nil
			}
			at = typed[i]
		default:
			return nil
		}
	}
	return at
}

// counterparts returns the paths in the stored object that correspond to one in the new object, with their values. Items of
// lists correspond if they have the same identity, at whatever position.
func counterparts(path []string, now, before any, prefix string) map[string]any {
	if len(path) == 0 {
		return map[string]any{strings.TrimPrefix(prefix, "\n"): before}
	}
	items, isList := now.([]any)
	olds, wasList := before.([]any)
	if !isList || !wasList {
		return counterparts(path[1:], valueAt(path[:1], now), valueAt(path[:1], before), prefix+"\n"+path[0])
	}
	i, err := strconv.Atoi(path[0])
	if err != nil || i < 0 || i >= len(items) {
		return nil
	}
	all := map[string]any{}
	for j, old := range olds {
		if reflect.DeepEqual(identity(items[i]), identity(old)) {
			maps.Copy(all, counterparts(path[1:], items[i], old, prefix+"\n"+strconv.Itoa(j)))
		}
	}
	return all
}

// identifying are the fields that distinguish items of lists.
var identifying = []string{"apiGroup", "domain", "key", "kind", "name", "namespace", "purpose", "resource", "type", "version"}

// identity returns what stays the same when an item of a list changes. An item without such fields is its own identity.
func identity(item any) any {
	fields, is := item.(map[string]any)
	if !is {
		return item
	}
	found := map[string]any{}
	for _, name := range identifying {
		if value, set := fields[name].(string); set {
			found[name] = value
		}
	}
	if len(found) == 0 {
		return item
	}
	return found
}
