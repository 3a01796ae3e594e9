package validation_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// stateRule is a change of an object that is in a given state.
type stateRule struct {
	// state and stateValue are the fields that the stored and the new object have in common, in the format of a rule.
	state, stateValue string
	rule
}

// checkStates puts an example into each state, changes it by the rule, and compares the errors that validation reports for the
// update of the unchanged object to the changed one.
func checkStates[T any](t *testing.T, kind string, index int, setDefaults func(*T), validate func(now, before *T) field.ErrorList, rules []stateRule) {
	t.Helper()
	for _, one := range rules {
		t.Run(one.state+"="+one.stateValue+"/"+one.path+"="+one.value, func(t *testing.T) {
			before, now := example(t, kind, index), example(t, kind, index)
			for _, object := range []map[string]any{before, now} {
				change(t, object, "metadata/resourceVersion", "'1'")
				change(t, object, one.state, one.stateValue)
			}
			change(t, now, one.path, one.value)
			compare(t, validate(decode(t, now, setDefaults), decode(t, before, setDefaults)), one.want)
		})
	}
}
