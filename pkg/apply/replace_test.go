package apply

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func invalidFields(causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{Causes: causes},
	}}
}

func TestHopeless(t *testing.T) {
	taken := metav1.StatusCause{Field: "spec.ports[0].nodePort", Message: "Invalid value: 30123: provided port is already allocated"}
	wrong := metav1.StatusCause{Field: "spec.ports[0].port", Message: "Invalid value: 0: must be between 1 and 65535"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":                    {nil, false},
		"no answer":               {errors.New("broken"), false},
		"a field":                 {invalidFields(wrong), true},
		"what the old one has":    {invalidFields(taken), false},
		"both":                    {invalidFields(taken, wrong), true},
		"a webhook with its code": {invalidFields(metav1.StatusCause{Message: "denied"}), false},
		"no right to create": {statusError(http.StatusForbidden, metav1.StatusReasonForbidden,
			`configmaps is forbidden: User "x" cannot create resource "configmaps" in API group ""`), true},
		"a quota": {statusError(http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota"), false},
		"later":   {statusError(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, ""), false},
	} {
		if got := neverCreatable(test.err); got != test.want {
			t.Errorf("%s: neverCreatable returned %v", name, got)
		}
	}
}
