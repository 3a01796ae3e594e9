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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Replace determines whether an object is deleted and created again if its update is rejected as invalid.
type Replace struct {
	// Allowed is set if the object is replaced regardless of the invalid field.
	Allowed bool
	// Immutable is set if the object is replaced if it is an immutable ConfigMap or Secret.
	Immutable bool
	// Propagation is the propagation policy of the deletion. The default of the API server applies if it is nil.
	Propagation *metav1.DeletionPropagation
	// Err is the reason why the object cannot be replaced although that is requested.
	Err error
}

func (r Replace) due(err error) bool {
	return r.Allowed || r.Immutable && immutable(err)
}

// invalid reports whether the API server itself found an invalid field in the object. Webhooks and admission policies
// may deny requests with the same code but do not name a field. In that case, deleting the object would not help.
func invalid(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusUnprocessableEntity || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field != "" })
}

// denied reports whether a right, a webhook or an admission policy rejected a request. The latter two may use the code of
// invalid objects, but name no field.
func denied(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsForbidden(err) ||
		errors.As(err, &status) && status.Status().Code == http.StatusUnprocessableEntity && !invalid(err)
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

// ErrReplacing is the error of an object that was deleted because its update was invalid, and that could not be created
// again yet.
var ErrReplacing = errors.New("deleted object because of 'invalid' update error")

// neverCreatable reports whether the error of a dry-run creation proves that the object cannot be created even when its
// name is free: a field is invalid, or the client must not create objects of this kind. An address or port that is
// already allocated may be the object's own. All other errors, such as an exceeded quota or the denial of a webhook,
// prove nothing.
func neverCreatable(err error) bool {
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

// replaceable reports whether the replacement of an object whose update is invalid would help, and would delete nothing
// else.
func (e *Engine) replaceable(ctx context.Context, task Task) bool {
	switch task.GroupKind() {
	case claimKind, volumeKind, object.Definition, schema.GroupKind{Kind: "Namespace"}:
		return false
	}
	return e.objects.TryCreate(ctx, task.Ref, task.initialBody(), metav1.FieldValidationIgnore) == nil
}

// replace deletes the existing object and creates it again. It does not delete the object if it could never be created
// again.
func (e *Engine) replace(ctx context.Context, resource metadata.ResourceInterface, task Task, cause error,
) (*metav1.PartialObjectMetadata, error) {
	if task.Replace.Err != nil {
		return nil, Permanent(fmt.Errorf("it is not replaced: %w; its update is invalid: %w", task.Replace.Err, cause))
	}
	if err := e.checkNoDataIsLost(ctx, task); err != nil {
		return nil, fmt.Errorf("it is not replaced: %w; its update is invalid: %w", err, cause)
	}
	if err := e.objects.TryCreate(ctx, task.Ref, task.initialBody(), metav1.FieldValidationIgnore); neverCreatable(err) {
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
