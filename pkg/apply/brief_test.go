package apply

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestBrief(t *testing.T) {
	for text, want := range map[string]string{
		"denied": "denied",
		`Job "x" is invalid: spec.template: Invalid value: {"env":[{"value":"hunter2: x"}]}: field is immutable`: `Job "x" is invalid: spec.template: Invalid value: …: field is immutable`,
		`Service "x" is invalid: spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535`:          `Service "x" is invalid: spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535`,
		".data.port: expected string, got &value.valueUnstructured{Value:8080}":                                  ".data.port: expected string, got 8080",
		"failed to create typed patch object: errors:\n  .spec.b: not declared\n  .spec.a: not declared":         "failed to create typed patch object: .spec.a: not declared, .spec.b: not declared",
	} {
		if got := brief(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestInOrder(t *testing.T) {
	first := metav1.StatusCause{Field: "data[a]", Message: `Invalid value: {"x":"hunter2"}: it is wrong`}
	second := metav1.StatusCause{Field: "data[b]", Message: "Invalid value: [1]: it is wrong, too"}
	cause := func(causes ...metav1.StatusCause) error {
		err := invalidFields(causes...)
		var status *apierrors.StatusError
		if !errors.As(err, &status) {
			t.Fatal("invalidFields does not return a StatusError")
		}
		var parts []string
		for _, cause := range causes {
			if part := cause.Field + ": " + cause.Message; !slices.Contains(parts, part) { // as apierrors.NewInvalid does
				parts = append(parts, part)
			}
		}
		status.ErrStatus.Message = "x is invalid: [" + strings.Join(parts, ", ") + "]"
		return status
	}
	const want = "x is invalid: [data[a]: Invalid value: …: it is wrong, data[b]: Invalid value: …: it is wrong, too]"
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"in order":          {cause(first, second), want},
		"not in order":      {cause(second, first), want},
		"named twice":       {cause(second, first, second), want},
		"wrapped":           {Permanent(fmt.Errorf("a: %w", cause(second, first))), "a: " + want},
		"joined":            {fmt.Errorf("%w; %w", cause(second, first), cause(second)), want + "; x is invalid: [data[b]: Invalid value: …: it is wrong, too]"},
		"without causes":    {statusError(http.StatusForbidden, metav1.StatusReasonForbidden, "b, a"), "b, a"},
		"not of the server": {errors.New("b, a"), "b, a"},
	} {
		if got := brief(inOrder(test.err)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
