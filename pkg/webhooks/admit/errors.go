package admit

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// retryAfterSeconds is how long a client is asked to wait if the facts for a decision cannot be had.
const retryAfterSeconds = 1

// refusal is an error with the status that the client gets.
type refusal struct {
	status metav1.Status
	cause  error
}

// Error returns the message of the status.
func (r *refusal) Error() string { return r.status.Message }

// Unwrap returns what led to it, if anything did.
func (r *refusal) Unwrap() error { return r.cause }

// Refuse returns an error that refuses a request with an HTTP status (400 and above) and a message for people: what is wrong, which
// field with which value, and what to do. The message may wrap an error with %w.
func Refuse(code int32, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &refusal{cause: errors.Unwrap(err), status: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reasonOf(code), Message: err.Error(),
	}}
}

// RefuseWith returns an error that refuses a request with a whole status, as apierrors.NewInvalid(…).Status().
func RefuseWith(status metav1.Status) error { return &refusal{status: status} }

// Unavailable returns an error that refuses a request for now: the client may send it again in a moment. It is for facts that cannot
// be had, so that nothing is decided wrongly.
func Unavailable(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &refusal{cause: errors.Unwrap(err), status: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: err.Error(),
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds},
	}}
}

// IsRefusal reports whether an error is one of Refuse, RefuseWith or Unavailable.
func IsRefusal(err error) bool {
	var refused *refusal
	return errors.As(err, &refused)
}

// reasonOf returns the reason that Kubernetes has for an HTTP status.
func reasonOf(code int32) metav1.StatusReason {
	switch code {
	case http.StatusBadRequest:
		return metav1.StatusReasonBadRequest
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusUnprocessableEntity:
		return metav1.StatusReasonInvalid
	case http.StatusInternalServerError:
		return metav1.StatusReasonInternalError
	default:
		return ""
	}
}

// answer words an error as a response. A request whose time is up is worth another try.
func answer(request *admission.Request, err error) admission.Response {
	var refused *refusal
	switch {
	case errors.As(err, &refused):
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		err = Unavailable("%s could not be checked in time: %w", subject(request), err)
	default:
		err = Refuse(http.StatusInternalServerError, "%s could not be checked: %w", subject(request), err)
	}
	if !errors.As(err, &refused) {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	status := refused.status
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}
}

// subject names the object of a request. Objects whose name is generated do not have one yet.
func subject(request *admission.Request) string {
	name := request.Name
	if name == "" {
		name = "without a name yet"
	} else {
		name = fmt.Sprintf("%q", name)
	}
	if request.Namespace == "" {
		return request.Kind.Kind + " " + name
	}
	return fmt.Sprintf("%s %s in namespace %q", request.Kind.Kind, name, request.Namespace)
}
