// Package backup is what the controllers of BackupBuckets and BackupEntries have in common: the extension object travels in a ManagedResource,
// its credentials in a Secret beside it, and both report what the extension reports.
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

// retryAfter is how long after an operation another one is asked for, because the extension failed, or took the first one without a trace.
const retryAfter = time.Minute

// Asked is what was asked of an extension last. It is remembered with the bundle.
type Asked struct {
	// Digest of what the operation was for.
	Digest string
	// At is when it was asked for; zero for never.
	At time.Time
}

// DigestFor returns the digest of an operation with what it is for.
func DigestFor(operation string, parts ...[]byte) string {
	return operation + "." + object.Digest(parts...)
}

// For reports whether an operation was asked for, with a digest of [DigestFor].
func (a Asked) For(operation string) bool { return strings.HasPrefix(a.Digest, operation+".") }

// since returns the second in which it was asked: the times in the status of extensions have no fractions.
func (a Asked) since() time.Time { return a.At.Truncate(time.Second) }

// The choices of a bundle that have what was asked.
const (
	choiceDigest = "asked-for"
	choiceAt     = "asked-at"
)

// Choices returns what was asked in the form in which a bundle remembers it.
func (a Asked) Choices() map[string]string {
	return map[string]string{choiceDigest: a.Digest, choiceAt: a.At.UTC().Format(time.RFC3339Nano)}
}

// Extension is an extension object as it lives.
type Extension struct {
	Generation  int64
	Annotations map[string]string
	Deleting    bool
	Status      extensionsv1alpha1.DefaultStatus
}

// Ask decides whether an operation has to be asked for, for what has a digest: it returns what is asked, which is what was asked before if
// nothing is due, and when to look again; zero for never. An extension that succeeded is asked again after a time; 0 for never. It is pure.
func Ask(before Asked, digest string, live *Extension, again time.Duration, now time.Time) (Asked, time.Time) {
	due := Asked{Digest: digest, At: now}
	if before.At.IsZero() || before.Digest != digest {
		return due, time.Time{}
	}
	if live == nil {
		return before, time.Time{} // it is created with what was asked
	}
	last := live.Status.LastOperation
	retry := before.At.Add(retryAfter)
	switch {
	case live.Annotations[constants.AnnotationGardenerOperation] != "":
		return before, time.Time{} // the extension has not begun
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

// Ready says why an extension has not finished what was asked; empty if it has.
func (e *Extension) Ready(asked Asked) string {
	switch {
	case e == nil:
		return "the extension object does not exist yet"
	case e.Annotations[constants.AnnotationGardenerTimestamp] != asked.At.UTC().Format(time.RFC3339Nano):
		return "the extension object has not been changed yet"
	case e.Annotations[constants.AnnotationGardenerOperation] != "":
		return "the extension has not begun"
	case e.Status.LastError != nil:
		return e.Status.LastError.Description
	case e.Status.ObservedGeneration != e.Generation, e.Status.LastOperation == nil:
		return "the extension has not observed the object yet"
	case e.Status.LastOperation.State != corev1beta1.LastOperationStateSucceeded:
		return fmt.Sprintf("the operation of the extension is %s: %s", e.Status.LastOperation.State, e.Status.LastOperation.Description)
	case e.Status.LastOperation.LastUpdateTime.Time.Before(asked.since()):
		return "the extension has not finished what was asked last"
	}
	return ""
}

// DigestOf returns a digest of data.
func DigestOf(data map[string][]byte, more ...[]byte) string {
	parts := more
	for _, key := range slices.Sorted(maps.Keys(data)) {
		parts = append(parts, []byte(key), data[key])
	}
	return object.Digest(parts...)
}
