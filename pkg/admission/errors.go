package admission

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// retrySeconds is the time after which clients retry a request that was refused because the facts are not known yet.
const retrySeconds = 1

// Invalid returns the error 422 with errors of fields; nil if there are none.
func (r *Request) Invalid(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(r.Kind, r.Name, errs)
}

// Forbidden returns errors of fields as one error, which refuses a request with 403; nil if there are none.
func Forbidden(errs field.ErrorList) error {
	return errs.ToAggregate()
}

// DomainTaken returns the error of a Shoot whose domain another Shoot has, or one above or below it. It does not name the other Shoot,
// which is not that of the user.
func DomainTaken(domain string) error {
	return fmt.Errorf("spec.dns.domain: %q is a domain of another Shoot, or above or below one: choose another domain", domain)
}

// Unavailable returns the error 503: the facts that a decision needs are not known yet.
func Unavailable(format string, values ...any) error {
	failure := apierrors.NewServiceUnavailable(fmt.Sprintf(format, values...))
	failure.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retrySeconds}
	return failure
}

// IsStatus reports whether an error is one of the API, such as 503, which clients must get as it is.
func IsStatus(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status)
}

// refusal returns the error that a client gets: API errors with their code, also if they are wrapped, and any other error as 403. It
// names the plugin where the error itself does not say what to change.
func (r *Request) refusal(plugin string, err error) error {
	if err == nil {
		return nil
	}
	failure := apierrors.APIStatus(nil)
	if !errors.As(err, &failure) || apierrors.IsNotFound(err) {
		return apierrors.NewForbidden(r.Resource, r.Name, fmt.Errorf("admission plugin %s: %w", plugin, err))
	}
	status := failure.Status()
	status.Message = err.Error()
	if apierrors.IsServiceUnavailable(err) {
		status.Message = fmt.Sprintf("admission plugin %s: %v", plugin, err)
	}
	return &apierrors.StatusError{ErrStatus: status}
}
