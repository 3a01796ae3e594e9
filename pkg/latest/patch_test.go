package latest

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestStatusPatch checks that a patch has the UID, and nothing else that has not changed.
func TestStatusPatch(t *testing.T) {
	for name, test := range map[string]struct {
		uid   string
		label bool
		want  string
	}{
		"nothing changed": {"a", false, `{"metadata":{"uid":"a"}}`},
		"changed":         {"a", true, `{"metadata":{"labels":{"one":"two"},"uid":"a"}}`},
		"without a UID":   {"", true, `{"metadata":{"labels":{"one":"two"}}}`},
	} {
		before := object(types.UID(test.uid), "1")
		after := before.DeepCopy()
		if test.label {
			after.Labels = map[string]string{"one": "two"}
		}
		if data, err := StatusPatch(before).Data(after); err != nil || string(data) != test.want {
			t.Errorf("%s: %s, %v", name, data, err)
		}
	}
}
