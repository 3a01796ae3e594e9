package ownedobject

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestJoin checks that errors that a retry cannot resolve are terminal, unless there is another error.
func TestJoin(t *testing.T) {
	refused := apierrors.NewInvalid(schema.GroupKind{}, "a", nil)
	for name, test := range map[string]struct {
		failures []error
		fails    bool
		terminal bool
	}{
		"none":                          {},
		"refused":                       {failures: []error{refused, fmt.Errorf("a: %w", errAltered), apierrors.NewBadRequest("a")}, fails: true, terminal: true},
		"one of two may be tried again": {failures: []error{refused, errors.New("broken")}, fails: true},
	} {
		err := Join(test.failures)
		if (err != nil) != test.fails || errors.Is(err, reconcile.TerminalError(nil)) != test.terminal {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
