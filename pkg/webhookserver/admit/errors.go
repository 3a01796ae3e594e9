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

// retryAfterSeconds is how many seconds a client should wait before a retry if the facts for a decision are not
// available.
const retryAfterSeconds = 1

// refusal is an error with the status to return to the client.
type refusal struct {
	status metav1.Status
	cause  error
}

// Error returns the message of the status.
func (r *refusal) Error() string { return r.status.Message }

// Unwrap returns the cause, or nil.
func (r *refusal) Unwrap() error { return r.cause }

// Refuse returns an error that rejects a request with an HTTP status (400 and above) and a message for users. The message
// names the problem, the field with its value, and the remedy. It may wrap an error with %w.
func Refuse(code int32, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &refusal{cause: errors.Unwrap(err), status: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reasonOf(code), Message: err.Error(),
	}}
}

// RefuseWith returns an error that rejects a request with a complete status, such as apierrors.NewInvalid(…).Status().
func RefuseWith(status metav1.Status) error { return &refusal{status: status} }

// Unavailable returns an error that rejects a request temporarily. The client may retry it after a second. Use it if
// facts are not available, to avoid a wrong decision.
func Unavailable(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &refusal{cause: errors.Unwrap(err), status: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: err.Error(),
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds},
	}}
}

// IsRefusal reports whether an error was returned by Refuse, RefuseWith or Unavailable.
func IsRefusal(err error) bool {
	var refused *refusal
	return errors.As(err, &refused)
}

// reasonOf returns the reason of Kubernetes for an HTTP status, or an empty reason.
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

// answer converts an error to a response. A request that timed out can be retried.
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

// subject names the object of a request for messages. An object with a generated name does not have a name yet.
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
