package controller

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/trellis-k8s/trellis/pkg/finalizer"
)

// Reasons of Events.
//
// +events:on=object that others refer to
const (
	eventReferenced = "ResourceReferenced" // Warning: it cannot be deleted yet, because others refer to it
)

// actionDelete is the action of these Events.
const actionDelete = "Delete"

// mostUsers limits the number of objects that an Event names.
const mostUsers = 10

// Protector adds finalizers to objects, and releases those that are being deleted once nothing uses them.
type Protector struct {
	finalizer.Holder

	Recorder events.EventRecorder
}

// Protector returns a Protector with these dependencies.
func (d Deps) Protector() Protector {
	return Protector{Holder: finalizer.Holder{Client: d.Client, Uncached: d.Live, Owner: FieldManager}, Recorder: d.Recorder}
}

// Release removes a finalizer from an object that nothing uses. Otherwise an Event of an object that is being deleted names the users.
// Watches have to report when they are gone.
func (p Protector) Release(ctx context.Context, object client.Object, name string, users finalizer.Users) error {
	left, err := p.Holder.Release(ctx, object, name, users)
	if len(left) > 0 && object.GetDeletionTimestamp() != nil {
		p.Recorder.Eventf(object, nil, corev1.EventTypeWarning, eventReferenced, actionDelete,
			"It is deleted once nothing refers to it: %s", strings.Join(left[:min(len(left), mostUsers)], ", "))
	}
	return err
}

// ChangesFinalizers passes creations, starts of deletions, and changes of finalizers.
func ChangesFinalizers() predicate.Predicate {
	return Changes(func(before, after client.Object) bool {
		return !slices.Equal(before.GetFinalizers(), after.GetFinalizers())
	})
}
