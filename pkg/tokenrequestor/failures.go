package tokenrequestor

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// eventAction is the action of the Events on source Secrets.
const eventAction = "RequestToken"

// Reasons of Events on source Secrets, and values of the label of failures in metrics.
//
// +events:on=Secret of the source cluster with the label of the token requestor
const (
	failureAnnotations = "InvalidAnnotations"  // Warning: annotations of the Secret cannot be used
	failureKubeconfig  = "InvalidKubeconfig"   // Warning: the kubeconfig in the Secret cannot be used
	failureNamespace   = "NamespaceNotAllowed" // Warning: the configuration does not allow a namespace in the annotations
	failureTarget      = "InvalidTarget"       // Warning: the token cannot be written to the named Secret of the target cluster
	failureRefused     = "RequestRefused"      // Warning: the target API server rejected a request
	failureRejected    = "TokenRejected"       // Warning: the target API server does not accept the new token
)

const (
	// failureRequest is a possibly temporary failure. No Event is created for it.
	failureRequest = "RequestFailed"
)

// problemError is a failure that a user must fix.
type problemError struct {
	// reason is one of the reasons of Events.
	reason string
	// lasting is set if only a change of the Secret or of the configuration can help, so there are no retries.
	lasting bool
	// again is the delay until the next attempt; 0 for exponential backoff.
	again time.Duration
	// err describes the problem and the remedy. It contains no bytes of Secrets.
	err error
}

// Error returns the text of the wrapped error.
func (p *problemError) Error() string { return p.err.Error() }

// Unwrap returns the wrapped error.
func (p *problemError) Unwrap() error { return p.err }

// lasting returns a problem that retries do not solve; nil if err is nil.
func lasting(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &problemError{reason: reason, lasting: true, err: err}
}

// requestError adds the purpose of a request to its error. If the API server rejected the request, the result is a
// problemError.
func requestError(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf(format+": %w", append(args, err)...)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return &problemError{reason: failureRefused, lasting: true, err: wrapped}
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err):
		return &problemError{reason: failureRefused, err: wrapped}
	}
	return wrapped
}

// conclude records and reports the result of a reconcile, and returns the error for controller-runtime. A lasting error
// is not retried until something changes.
func (r *Reconciler) conclude(
	ctx context.Context, meta *metav1.PartialObjectMetadata, next time.Duration, err error,
) (reconcile.Result, error) {
	source := client.ObjectKeyFromObject(meta)
	if err == nil {
		r.memories.update(source, func(m *memory) { m.seen, m.failing, m.lastEvent = true, false, "" })
		return reconcile.Result{RequeueAfter: next}, nil
	}
	var problem *problemError
	if !errors.As(err, &problem) {
		r.memories.update(source, func(m *memory) { m.seen, m.failing, m.version = true, true, "" })
		r.Metrics.failed(failureRequest)
		return reconcile.Result{}, err
	}
	note := problem.reason + ": " + conditiontext.Stable(err.Error())
	isNew := false
	r.memories.update(source, func(m *memory) {
		isNew = m.lastEvent != note
		m.seen, m.failing, m.version, m.lastEvent = true, true, "", note
	})
	if isNew {
		r.Recorder.Eventf(meta, nil, corev1.EventTypeWarning, problem.reason, eventAction, "%s",
			conditiontext.ForEvent(conditiontext.Stable(err.Error())))
	}
	r.Metrics.failed(problem.reason)
	switch {
	case problem.lasting:
		err = reconcile.TerminalError(err)
	case problem.again > 0:
		log.FromContext(ctx).Error(err, "Could not request a token", "again", problem.again.String())
		return reconcile.Result{RequeueAfter: problem.again}, nil
	}
	return reconcile.Result{}, err
}
