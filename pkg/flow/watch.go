package flow

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// EmittedBy filters for ManagedResources and Secrets that the named flow has emitted.
func EmittedBy(flow string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetLabels()[LabelFlow] == flow })
}

// ToOwner returns an event handler that enqueues the owner of an object that a flow has emitted.
func ToOwner() handler.EventHandler { return handler.EnqueueRequestsFromMapFunc(OwnerOf) }

// OwnerOf returns a request for the object named in AnnotationOwner, and none if the annotation is missing.
func OwnerOf(_ context.Context, object client.Object) []reconcile.Request {
	if owner, known := ParseOwner(object.GetAnnotations()[AnnotationOwner]); known {
		return []reconcile.Request{{NamespacedName: owner}}
	}
	return nil
}

// DeclarationChanged filters the updates of an owner for those that its flow does not make itself: changes of its spec,
// annotations and finalizers, the start of its deletion, and its replacement by a new object of the same name. Delete
// events are dropped, because the finalizer turns a deletion into an update.
func DeclarationChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() ||
				!equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) ||
				!equality.Semantic.DeepEqual(before.GetFinalizers(), after.GetFinalizers()) ||
				(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// DeleteManifests deletes the manifest Secrets with the given labels ([Owner.Labels], or only LabelFlow) in a
// namespace. The garbage collector would delete them later, but only if a resource-manager still runs. The reader must
// not be a cache.
func DeleteManifests(ctx context.Context, uncached client.Reader, writer client.Writer, namespace string, labels client.MatchingLabels) error {
	return DeleteSelected(ctx, uncached, writer, "Secret", namespace, labels)
}

// DeleteSelected deletes the objects of a core kind, such as Secret, in a namespace that an option selects. The reader must not be a cache.
func DeleteSelected(ctx context.Context, uncached client.Reader, writer client.Writer, kind, namespace string, selected client.ListOption) error {
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	if err := uncached.List(ctx, &list, client.InNamespace(namespace), selected); err != nil {
		return fmt.Errorf("list the %ss in %s: %w", kind, namespace, err)
	}
	for i := range list.Items {
		object := &list.Items[i]
		if err := client.IgnoreNotFound(writer.Delete(ctx, object, client.Preconditions{UID: &object.UID})); err != nil {
			return fmt.Errorf("delete %s %s/%s: %w", kind, namespace, object.Name, err)
		}
	}
	return nil
}
