package validation_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/ruletest"
)

// rule is a change of an object that makes it invalid or, if no error is expected, keeps it valid.
type rule struct {
	// path is the changed field and value its new value, as YAML. An empty value removes the field. Several changes are separated
	// by semicolons in both.
	path, value string
	// want is the path of the reported field and the type of the error. It is empty if no error is expected.
	want string
}

// example returns one of the example manifests, with fields that the examples leave to admission plugins.
func example(t *testing.T, kind string, index int) map[string]any {
	t.Helper()
	object := ruletest.Example(t, "core", kind, index)
	switch {
	case kind == "project":
		change(t, object, "spec/createdBy", "{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice@example.org}")
	case kind == "shoot" && index == 0:
		change(t, object, "spec/tolerations", "[{key: example.org/dedicated, value: dev}]")
		change(t, object, "spec/exposureClassName", "internet")
	}
	return object
}

func decode[T any](t *testing.T, content any, setDefaults func(*T)) *T {
	t.Helper()
	return ruletest.Decode(t, content, setDefaults)
}

// change sets fields of an object. A number in a path is an index of a list.
func change(t *testing.T, object map[string]any, paths, values string) {
	t.Helper()
	ruletest.Change(t, object, paths, values)
}

// checkRules changes an example by each rule, and compares the reported errors.
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

// checkUpdates changes an example by each rule, and compares the errors reported for an update from the unchanged example.
func checkUpdates[T any](t *testing.T, kind string, index int, setDefaults func(*T), validate func(now, before *T) field.ErrorList, rules []rule) {
	t.Helper()
	for _, rule := range rules {
		t.Run(rule.path+"="+rule.value, func(t *testing.T) {
			before, now := example(t, kind, index), example(t, kind, index)
			for _, object := range []map[string]any{before, now} {
				change(t, object, "metadata/resourceVersion", "'1'")
			}
			change(t, now, rule.path, rule.value)
			compare(t, validate(decode(t, now, setDefaults), decode(t, before, setDefaults)), rule.want)
		})
	}
}

func compare(t *testing.T, errs field.ErrorList, want string) {
	t.Helper()
	ruletest.Compare(t, errs, want)
}
