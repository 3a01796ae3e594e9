package apply

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPanicOfOneObject checks that a panic reaches the caller after all other objects were tried, and that no slot remains
// occupied.
func TestPanicOfOneObject(t *testing.T) {
	engine := &Engine{slots: make(chan struct{}, 2)}
	var tried atomic.Int32
	func() {
		defer func() {
			// The stack in the message is that of the panicking call.
			if cause, _ := recover().(string); !strings.HasPrefix(cause, "of object 1\n") || !strings.Contains(cause, "TestPanicOfOneObject") {
				t.Errorf("the caller gets %v", cause)
			}
		}()
		engine.forEach(5, func(i int) {
			tried.Add(1)
			if i == 1 {
				panic("of object 1")
			}
		})
	}()
	if tried.Load() != 5 || len(engine.slots) != 0 {
		t.Errorf("%d objects were tried, and %d slots are occupied", tried.Load(), len(engine.slots))
	}
}

// TestDecisiveErrors checks that one of several errors decides whether a retry is pointless.
func TestDecisiveErrors(t *testing.T) {
	passing, lasting := errors.New("it passes"), statusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "it lasts")
	for _, test := range []struct {
		decisive error
		want     bool
	}{{passing, false}, {lasting, true}} {
		err := fmt.Errorf("x: %w", &decidedError{fmt.Errorf("%w, %w", passing, lasting), test.decisive})
		if Terminal(err) != test.want || !errors.Is(err, passing) || !apierrors.IsInvalid(err) {
			t.Errorf("Terminal of %v is %t", err, Terminal(err))
		}
	}
}

func TestImmutable(t *testing.T) {
	frozen := metav1.StatusCause{Type: metav1.CauseTypeForbidden, Field: "data", Message: "Forbidden: field is immutable when `immutable` is set"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"immutable":     {invalidFields(frozen), true},
		"among others":  {invalidFields(metav1.StatusCause{Field: "x"}, frozen), true},
		"another field": {invalidFields(metav1.StatusCause{Type: metav1.CauseTypeForbidden, Field: "spec", Message: "field is immutable"}), false},
		"no causes":     {statusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, frozen.Message), false},
		"no answer":     {errors.New(frozen.Message), false},
	} {
		if got := (Replace{Immutable: true}).due(test.err); got != test.want {
			t.Errorf("%s: due returned %t", name, got)
		}
		if !(Replace{Allowed: true}).due(test.err) || (Replace{}).due(test.err) {
			t.Errorf("%s: an allowed replacement is not due, or one that is not allowed is due", name)
		}
	}
}

// TestChangedObjects checks which answers of the API server mean that an object is not the expected one.
func TestChangedObjects(t *testing.T) {
	uid := metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "metadata.uid"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"a conflict":        {statusError(http.StatusConflict, metav1.StatusReasonConflict, ""), true},
		"it exists":         {statusError(http.StatusConflict, metav1.StatusReasonAlreadyExists, ""), true},
		"another UID":       {invalidFields(uid), true},
		"another field":     {invalidFields(metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec"}), false},
		"it is not allowed": {statusError(http.StatusForbidden, metav1.StatusReasonForbidden, ""), false},
		"nothing":           {nil, false},
	} {
		got := changed(test.err)
		if errors.Is(got, ErrChanged) != test.want || test.err != nil && !strings.Contains(got.Error(), test.err.Error()) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
