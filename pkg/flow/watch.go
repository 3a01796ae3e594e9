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

// EmittedBy lets the events of ManagedResources and Secrets pass that the named flow has emitted.
func EmittedBy(flow string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetLabels()[LabelFlow] == flow })
}

// ToOwner returns an event handler that enqueues the owner of an object that a flow has emitted.
func ToOwner() handler.EventHandler { return handler.EnqueueRequestsFromMapFunc(OwnerOf) }

// OwnerOf returns a request for the object that AnnotationOwner of an object names, and none if the object does not have the annotation.
func OwnerOf(_ context.Context, object client.Object) []reconcile.Request {
	if owner, known := ParseOwner(object.GetAnnotations()[AnnotationOwner]); known {
		return []reconcile.Request{{NamespacedName: owner}}
	}
	return nil
}

// DeclarationChanged lets the updates of an owner pass that its flow does not make itself: those of its specification, annotations and
// finalizers, the start of its deletion, and another object of the same name. Deletions do not pass: finalizers make them updates.
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

// DeleteManifests deletes the Secrets with manifests that have the labels ([Owner.Labels], or LabelFlow alone) in a namespace. The garbage
// collector would delete them later, if a resource-manager runs by then. The reader must not be a cache.
func DeleteManifests(ctx context.Context, uncached client.Reader, writer client.Writer, namespace string, labels client.MatchingLabels) error {
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := uncached.List(ctx, &list, client.InNamespace(namespace), labels); err != nil {
		return fmt.Errorf("list the Secrets with manifests in %s: %w", namespace, err)
	}
	for i := range list.Items {
		secret := &list.Items[i]
		if err := client.IgnoreNotFound(writer.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})); err != nil {
			return fmt.Errorf("delete Secret %s/%s: %w", namespace, secret.Name, err)
		}
	}
	return nil
}
