package requeue

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/trellis-k8s/trellis/pkg/leaderfence"
)

// AfterConflict is when an object is reconciled again after a conflict: soon, because the cache shows the change in a moment.
const AfterConflict = 50 * time.Millisecond

// OnlyOf reports whether an error, or each part of a joined error, is of a kind.
func OnlyOf(err error, is func(error) bool) bool {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return is(err)
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(part error) bool { return !OnlyOf(part, is) })
}

// IsTransient reports whether an error is expected to pass without a change by anyone. That a process is no longer the leader is such an error:
// the next leader repeats the pass.
func IsTransient(err error) bool {
	var network net.Error
	return apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled) || errors.Is(err, leaderfence.ErrNotLeader) || utilnet.IsProbableEOF(err) || errors.As(err, &network)
}

// OnlyConflicts reports whether nothing failed but writes of objects that have changed since they were read. The next pass reads them again,
// so this is not reported.
func OnlyConflicts(err error) bool { return err != nil && OnlyOf(err, apierrors.IsConflict) }
