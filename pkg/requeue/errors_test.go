package requeue

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOnlyConflicts(t *testing.T) {
	conflict := fmt.Errorf("write Garden local: %w", apierrors.NewConflict(schema.GroupResource{Resource: "gardens"}, "local", errors.New("changed")))
	other := errors.New("no connection")
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":                     {nil, false},
		"a conflict":               {conflict, true},
		"two conflicts":            {errors.Join(conflict, conflict), true},
		"another error":            {other, false},
		"a conflict and an error":  {errors.Join(conflict, other), false},
		"joined within an error":   {fmt.Errorf("record: %w", errors.Join(conflict, other)), false},
		"conflicts within another": {fmt.Errorf("record: %w", errors.Join(conflict)), true},
	} {
		if got := OnlyConflicts(test.err); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}
