package watches

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Notifier notifies a controller of changes that no watch of a cache shows.
type Notifier chan event.GenericEvent

// NewNotifier returns a Notifier in which a number of changes can be pending. It drops further changes, so that who notifies never waits. The
// number is larger than what is expected, or 1 if all changes request the same.
func NewNotifier(pending int) Notifier { return make(Notifier, pending) }

// Notify reports that an object has changed.
func (n Notifier) Notify(object client.Object) {
	select {
	case n <- event.GenericEvent{Object: object}:
	default:
	}
}

// Wake reports that something has changed that is not an object. The function of Source gets an empty object.
func (n Notifier) Wake() { n.Notify(&metav1.PartialObjectMetadata{}) }

// Source returns the source of the requests that a function makes of the changed objects. There is one source of a Notifier.
func (n Notifier) Source(requests handler.MapFunc) source.Source {
	return source.Channel(n, handler.EnqueueRequestsFromMapFunc(requests))
}
