// Package backup contains the common parts of the controllers of BackupBuckets and BackupEntries. Both apply an extension
// object with a ManagedResource and write its credentials to a Secret, and both report the status of the extension.
package backup

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// retryAfter is the delay before an operation is requested again because it failed, or because the extension shows no result.
const retryAfter = time.Minute

// Asked is the last request to an extension. The bundle stores it.
type Asked struct {
	// Digest of the operation and its inputs.
	Digest string
	// At is the time of the request, or zero if there was none.
	At time.Time
}

// DigestFor returns the digest of an operation and its inputs.
func DigestFor(operation string, parts ...[]byte) string {
	return operation + "." + object.Digest(parts...)
}

// For reports whether the request was for an operation. The digest must be one of [DigestFor].
func (a Asked) For(operation string) bool { return strings.HasPrefix(a.Digest, operation+".") }

// since returns the time of the request without fractions of a second, which timestamps in the status of extensions do not have.
func (a Asked) since() time.Time { return a.At.Truncate(time.Second) }

// Choices of a bundle that store the last request.
const (
	choiceDigest = "asked-for"
	choiceAt     = "asked-at"
)

// Choices returns the request in the form in which a bundle stores it.
func (a Asked) Choices() map[string]string {
	return map[string]string{choiceDigest: a.Digest, choiceAt: a.At.UTC().Format(time.RFC3339Nano)}
}

// Extension contains the relevant fields of a live extension object.
type Extension struct {
	Generation  int64
	Annotations map[string]string
	Deleting    bool
	Status      extensionsv1alpha1.DefaultStatus
}

// Ask decides whether to request an operation for the given digest. It returns the request, which is the previous one if
// nothing is due, and when to decide again, or zero for never. After a success, the operation is requested again after
// the interval again, unless it is 0. It is a pure function.
func Ask(before Asked, digest string, live *Extension, again time.Duration, now time.Time) (Asked, time.Time) {
	due := Asked{Digest: digest, At: now}
	if before.At.IsZero() || before.Digest != digest {
		return due, time.Time{}
	}
	if live == nil {
		return before, time.Time{} // the object is created with the request
	}
	last := live.Status.LastOperation
	retry := before.At.Add(retryAfter)
	switch {
	case live.Annotations[constants.AnnotationGardenerOperation] != "":
		return before, time.Time{} // the extension has not started
	case last == nil, last.State == corev1beta1.LastOperationStateFailed, last.LastUpdateTime.Time.Before(before.since()):
		if now.Before(retry) {
			return before, retry
		}
		return due, time.Time{}
	case last.State == corev1beta1.LastOperationStateSucceeded && again > 0:
		if next := last.LastUpdateTime.Add(again); now.Before(next) {
			return before, next
		}
		return due, time.Time{}
	}
	return before, time.Time{}
}

// Ready returns why an extension has not completed a request, or an empty string.
func (e *Extension) Ready(asked Asked) string {
	switch {
	case e == nil:
		return "the extension object does not exist yet"
	case e.Annotations[constants.AnnotationGardenerTimestamp] != asked.At.UTC().Format(time.RFC3339Nano):
		return "the extension object has not been changed yet"
	case e.Annotations[constants.AnnotationGardenerOperation] != "":
		return "the extension has not started"
	case e.Status.LastError != nil:
		return e.Status.LastError.Description
	case e.Status.ObservedGeneration != e.Generation, e.Status.LastOperation == nil:
		return "the extension has not observed the object yet"
	case e.Status.LastOperation.State != corev1beta1.LastOperationStateSucceeded:
		return fmt.Sprintf("the operation of the extension is %s: %s", e.Status.LastOperation.State, e.Status.LastOperation.Description)
	case e.Status.LastOperation.LastUpdateTime.Time.Before(asked.since()):
		return "the extension has not completed the last request"
	}
	return ""
}

// DigestOf returns a digest of data and optional further parts.
func DigestOf(data map[string][]byte, more ...[]byte) string {
	parts := more
	for _, key := range slices.Sorted(maps.Keys(data)) {
		parts = append(parts, []byte(key), data[key])
	}
	return object.Digest(parts...)
}
