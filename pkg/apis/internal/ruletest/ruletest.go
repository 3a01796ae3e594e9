// Package ruletest tests validation functions with tables of changes to the example manifests. Only tests import it.
package ruletest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Row is a change of an object with the expected errors: the path, the new value, and the errors. A path has slashes, and
// numbers for the items of lists. The value is YAML. An empty value removes the field. Several changes are separated by
// semicolons in both. The errors are a list of fields with the types of their errors. It is empty if the change is valid.
type Row [3]string

// examples caches manifests by group, kind and index, because tables read the same manifest for each row.
var examples = struct {
	sync.Mutex

	objects map[[3]string]map[string]any
}{objects: map[[3]string]map[string]any{}}

// Example returns one of the example manifests of a kind.
func Example(t *testing.T, group, kind string, index int) map[string]any {
	t.Helper()
	key := [3]string{group, kind, strconv.Itoa(index)}
	examples.Lock()
	defer examples.Unlock()
	if known, ok := examples.objects[key]; ok {
		return runtime.DeepCopyJSON(known)
	}
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "examples", "fleet", group, kind+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := yaml.Unmarshal(bytes.Split(content, []byte("\n---\n"))[index], &object); err != nil {
		t.Fatal(err)
	}
	examples.objects[key] = object
	return runtime.DeepCopyJSON(object)
}

// Decode reads an object strictly and sets its defaults.
func Decode[T any](t *testing.T, content any, setDefaults func(*T)) *T {
	t.Helper()
	raw, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	object := new(T)
	strict, err := kjson.UnmarshalStrict(raw, object)
	if err := errors.Join(append(strict, err)...); err != nil {
		t.Fatal(err)
	}
	setDefaults(object)
	return object
}

// NoDefaults is the defaulting function of kinds without defaults.
func NoDefaults[T any](*T) {}

// Change sets fields of an object.
func Change(t *testing.T, object map[string]any, paths, values string) {
	t.Helper()
	if paths == "" {
		return
	}
	pathList, valueList := strings.Split(paths, "; "), strings.Split(values, "; ")
	for i, path := range pathList {
		var value any
		if err := yaml.Unmarshal([]byte(valueList[i]), &value); err != nil {
			t.Fatal(err)
		}
		set(object, strings.Split(path, "/"), value)
	}
}

func set(at any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	name, below := path[0], path[1:]
	if list, is := at.([]any); is {
		i, _ := strconv.Atoi(name)
		for len(list) <= i {
			list = append(list, nil)
		}
		list[i] = set(list[i], below, value)
		return list
	}
	object, _ := at.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	if changed := set(object[name], below, value); changed == nil {
		delete(object, name)
	} else {
		object[name] = changed
	}
	return object
}

// Check applies each row to an example, and compares the reported errors.
func Check[T any](t *testing.T, group, kind string, setDefaults func(*T), validate func(*T) field.ErrorList, rows []Row) {
	t.Helper()
	for _, row := range rows {
		t.Run(row[0]+"="+row[1], func(t *testing.T) {
			object := Example(t, group, kind, 0)
			Change(t, object, row[0], row[1])
			Compare(t, validate(Decode(t, object, setDefaults)), row[2])
		})
	}
}

// CheckUpdate applies each row to an example, and compares the errors that are reported when it replaces the unchanged
// example.
func CheckUpdate[T any](t *testing.T, group, kind string, setDefaults func(*T), validate func(now, before *T) field.ErrorList, rows []Row) {
	t.Helper()
	for _, row := range rows {
		t.Run(row[0]+"="+row[1], func(t *testing.T) {
			before, now := Example(t, group, kind, 0), Example(t, group, kind, 0)
			for _, object := range []map[string]any{before, now} {
				set(object, []string{"metadata", "resourceVersion"}, "1")
			}
			Change(t, now, row[0], row[1])
			Compare(t, validate(Decode(t, now, setDefaults), Decode(t, before, setDefaults)), row[2])
		})
	}
}

// Compare compares errors with a list of fields and the types of their errors.
func Compare(t *testing.T, errs field.ErrorList, want string) {
	t.Helper()
	var got []string
	for _, err := range errs {
		got = append(got, err.Field+" "+strings.TrimPrefix(string(err.Type), "FieldValue"))
	}
	slices.Sort(got)
	got = slices.Compact(got)
	if joined := strings.Join(got, ", "); joined != want {
		t.Errorf("got %q, want %q: %v", joined, want, errs)
	}
}
