// Package ownedobject writes objects that belong entirely to the resource-manager. It removes fields of other managers,
// and deletions have preconditions.
package ownedobject

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/fight"
)

// Results of writes, as values of a metric label.
const (
	Created = "created"
	Updated = "updated"
	Deleted = "deleted"
	Failed  = "failed"
)

// Results returns all results of writes.
func Results() []string { return []string{Created, Updated, Deleted, Failed} }

// errAltered reports that another program changes the object at each write.
var errAltered = errors.New("something, such as a mutating webhook, changes the object after every write")

// Join joins the errors of several writes. The result is retried, unless the API server rejects the requests as invalid
// or another program alters the object. Then the error is terminal.
func Join(failures []error) error {
	retry := slices.ContainsFunc(failures, func(err error) bool {
		return !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !errors.Is(err, errAltered)
	})
	err := errors.Join(failures...)
	if err == nil || retry {
		return err
	}
	return reconcile.TerminalError(err)
}

// object is a pointer to an API object.
type object interface {
	comparable
	metav1.Object
}

// Client writes objects of one kind in one namespace. Clients of client-go implement it, typed and dynamic ones.
type Client[T object] interface {
	Patch(ctx context.Context, name string, of types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (T, error)
}

// Writer writes objects of one kind.
type Writer[T object] struct {
	// Kind names the kind in errors and logs.
	Kind string
	// Client returns the client for a namespace.
	Client func(namespace string) Client[T]
	// Delete deletes an object.
	Delete func(ctx context.Context, key types.NamespacedName, options metav1.DeleteOptions) error
	// Digest identifies the content of an object that must be as desired.
	Digest func(T) string
	// Keep lists the fields that other managers may own.
	Keep []fieldowner.Pattern
	// Label is the label of the objects, for the error if another program changes an object at each write.
	Label string
	// Timeout limits the total time of the requests of one write.
	Timeout time.Duration
	// Fights observes each update and deletion.
	Fights *fight.Detector[types.NamespacedName]
	Clock  clock.PassiveClock
	// Count counts results.
	Count func(result string)
	// Applied is called with the stored object after each apply. It may be nil.
	Applied func(ctx context.Context, live T)
}

// Write creates, updates or deletes the object with the given key. A zero desired deletes it, a nil present creates it.
// It is not an error if the object or its namespace is being deleted, because an event follows.
func (w Writer[T]) Write(ctx context.Context, key types.NamespacedName, desired T, present *metav1.ObjectMeta) error {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	var none T
	digest := ""
	if desired != none {
		digest = w.Digest(desired)
	}
	if present != nil {
		w.Fights.Observe(key, digest, "", w.Clock.Now())
	} else {
		w.Fights.Forget(key)
	}
	var result string
	var err error
	switch {
	case desired == none:
		result, err = Deleted, w.Delete(ctx, key, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &present.UID, ResourceVersion: &present.ResourceVersion},
		})
	case present == nil:
		result, err = Created, w.apply(ctx, desired)
	default:
		result, err = Updated, w.apply(ctx, desired)
	}
	if err != nil && !isGone(err) {
		w.Count(Failed)
		return fmt.Errorf("%s %s: %w", w.Kind, key, err)
	}
	w.Count(result)
	log.FromContext(ctx).V(1).Info("Wrote an object", "kind", w.Kind, "change", result, "object", key.String())
	return nil
}

// apply applies an object and takes over differing fields of other managers.
func (w Writer[T]) apply(ctx context.Context, desired T) error {
	client := w.Client(desired.GetNamespace())
	body, err := json.Marshal(desired)
	if err != nil {
		return err
	}
	live, asDesired, err := fieldowner.ForceApply[T]{
		Apply: func() (T, error) {
			return client.Patch(ctx, desired.GetName(), types.ApplyPatchType, body,
				metav1.PatchOptions{FieldManager: resourcesv1alpha1.FieldManager, Force: ptr.To(true)})
		},
		Patch: func(live T, patch []byte) error {
			_, err := client.Patch(ctx, live.GetName(), types.JSONPatchType, patch,
				metav1.PatchOptions{FieldManager: resourcesv1alpha1.FieldManager})
			return err
		},
		AsDesired: func(live T) bool { return w.Digest(live) == w.Digest(desired) },
		Keep:      w.Keep,
	}.Run()
	switch {
	case err != nil:
		return err
	case !asDesired:
		return fmt.Errorf("%w: exclude from it objects with the label %s", errAltered, w.Label)
	case w.Applied != nil:
		w.Applied(ctx, live)
	}
	return nil
}

// isGone reports whether a write failed because the object does not exist, or its namespace is being deleted.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
