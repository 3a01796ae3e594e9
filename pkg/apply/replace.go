package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// Replace says whether an object is deleted and created again when its update is rejected as invalid.
type Replace struct {
	// Allowed replaces the object whatever is invalid.
	Allowed bool
	// Immutable replaces the object if it is an immutable ConfigMap or Secret.
	Immutable bool
	// Propagation is the policy of the deletion; nil for the API server's default.
	Propagation *metav1.DeletionPropagation
	// Err says why the object cannot be replaced though that is asked for; nil if it can.
	Err error
}

func (r Replace) due(err error) bool {
	return r.Allowed || r.Immutable && immutable(err)
}

// invalid reports whether the API server itself found a field of the object invalid. Webhooks and admission policies may deny
// requests with the same code, but name no field; deleting the object would not help.
func invalid(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusUnprocessableEntity || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field != "" })
}

// immutable reports whether a ConfigMap or Secret was rejected because it is immutable.
func immutable(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeForbidden &&
			strings.Contains(cause.Message, "field is immutable when `immutable` is set") {
			return true
		}
	}
	return false
}

// ErrReplacing says that an object was deleted because its update was invalid, and could not be created again yet.
var ErrReplacing = errors.New("deleted object because of 'invalid' update error")

// hopeless reports whether an object that could not be created in a trial cannot be created either once its name is free:
// a field is invalid, or creating objects of its kind is not allowed. An address or port that is taken may be the
// object's own. All else, such as a quota or the denial of a webhook, proves nothing.
func hopeless(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	if status.Status().Code == http.StatusForbidden { // the text is that of Kubernetes' authorization, see forbiddenMessage
		return strings.Contains(status.Status().Message, "cannot create resource")
	}
	return invalid(err) && slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field != "" && !strings.Contains(cause.Message, "already allocated")
	})
}

// replace deletes the object that was found and creates it again. It is not deleted if it could never be created.
func (e *Engine) replace(ctx context.Context, resource metadata.ResourceInterface, task Task, cause error,
) (*metav1.PartialObjectMetadata, error) {
	if task.Replace.Err != nil {
		return nil, Permanent(fmt.Errorf("it is not replaced: %w; its update is invalid: %w", task.Replace.Err, cause))
	}
	if err := e.objects.TryCreate(ctx, task.Ref, task.initialBody(), metav1.FieldValidationIgnore); hopeless(err) {
		return nil, fmt.Errorf("it is not replaced, because creating it again would also fail: %w; its update is invalid: %w", err, cause)
	}
	err := resource.Delete(ctx, task.Name, metav1.DeleteOptions{
		PropagationPolicy: task.Replace.Propagation,
		Preconditions:     &metav1.Preconditions{UID: &task.Live.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, &decidedError{fmt.Errorf("delete it because of 'invalid' update error (%w): %w", cause, err), err}
	}
	meta, err := create(ctx, resource, task)
	if err != nil {
		return nil, &decidedError{fmt.Errorf("%w, and waiting until it is gone: %w", ErrReplacing, errors.Join(cause, err)), err}
	}
	return meta, nil
}
