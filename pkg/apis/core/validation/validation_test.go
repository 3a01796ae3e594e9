package validation_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// rule is a change of an object that makes it invalid, or, without an error, leaves it valid.
type rule struct {
	// path and value are what is changed, as YAML. An empty value removes the field. Several changes are parted by
	// semicolons in both.
	path, value string
	// want is the path of the field that is reported and the type of the error, or nothing.
	want string
}

// example returns one of the example manifests.
func example(t *testing.T, kind string, index int) map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "examples", "fleet", "core", kind+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := yaml.Unmarshal(bytes.Split(content, []byte("\n---\n"))[index], &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func decode[T any](t *testing.T, content any, setDefaults func(*T)) *T {
	t.Helper()
	raw, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	object := new(T)
	if err := yaml.UnmarshalStrict(raw, object); err != nil {
		t.Fatal(err)
	}
	setDefaults(object)
	return object
}

// change sets fields of an object. A number in a path is an index of a list.
func change(t *testing.T, object map[string]any, paths, values string) {
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
	if list, is := at.([]any); is {
		i, _ := strconv.Atoi(path[0])
		for len(list) <= i {
			list = append(list, nil)
		}
		list[i] = set(list[i], path[1:], value)
		return list
	}
	object, _ := at.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	if below := set(object[path[0]], path[1:], value); below == nil {
		delete(object, path[0])
	} else {
		object[path[0]] = below
	}
	return object
}

// checkRules changes an example by each rule, and compares what is reported.
func checkRules[T any](t *testing.T, kind string, index int, setDefaults func(*T), validate func(*T) field.ErrorList, rules []rule) {
	t.Helper()
	for _, rule := range rules {
		t.Run(rule.path+"="+rule.value, func(t *testing.T) {
			object := example(t, kind, index)
			change(t, object, rule.path, rule.value)
			compare(t, validate(decode(t, object, setDefaults)), rule.want)
		})
	}
}

// checkUpdates changes an example by each rule, and compares what is reported when it replaces the unchanged one.
func checkUpdates[T any](t *testing.T, kind string, index int, setDefaults func(*T), validate func(now, before *T) field.ErrorList, rules []rule) {
	t.Helper()
	for _, rule := range rules {
		t.Run(rule.path+"="+rule.value, func(t *testing.T) {
			before, now := example(t, kind, index), example(t, kind, index)
			for _, object := range []map[string]any{before, now} {
				set(object, []string{"metadata", "resourceVersion"}, "1")
			}
			change(t, now, rule.path, rule.value)
			compare(t, validate(decode(t, now, setDefaults), decode(t, before, setDefaults)), rule.want)
		})
	}
}

func compare(t *testing.T, errs field.ErrorList, want string) {
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
