package flow

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/manifestsecret"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// confirm writes a revision of a bundle in which all objects have the deletion confirmation annotation. It is built
// from the Secrets of the last revision, because the plan might no longer be able to compute the bundle.
//
// The revision depends on nothing: its dependencies might be unhealthy, or already deleted. Neither does it create
// anything: it contains only objects that were applied.
func (e *Emitter) confirm(ctx context.Context, owner Owner, step Step) error {
	mr, err := e.readOwn(ctx, owner, step)
	if err != nil || mr == nil {
		return err
	}
	if step.inPlace {
		return e.confirmInPlace(ctx, mr, step)
	}
	applied := inventoryOf(mr)
	if len(applied) == 0 {
		return nil // the cache was outdated: there is nothing to confirm
	}
	var documents []manifestsecret.Document
	for _, reference := range mr.Spec.SecretRefs {
		confirmed, err := e.confirmed(ctx, client.ObjectKey{Namespace: mr.Namespace, Name: reference.Name}, step)
		if err != nil {
			return err
		}
		for _, each := range confirmed {
			if applied[each.key] {
				documents = append(documents, each.Document)
			}
		}
	}
	if len(documents) == 0 {
		return fmt.Errorf("none of the objects in its Secrets has been applied, so that their deletion needs no confirmation")
	}
	secrets, err := pack(owner, step.Key, documents)
	if err != nil {
		return err
	}
	if err := e.createSecrets(ctx, secrets); err != nil {
		return err
	}
	next := &resourcesv1alpha1.ManagedResource{Spec: *mr.Spec.DeepCopy()}
	next.Namespace, next.Name, next.UID, next.Labels = mr.Namespace, mr.Name, mr.UID, mr.Labels
	next.Spec.SecretRefs, next.Spec.DependsOn = refs(secrets), nil
	if err := annotate(next, mr.Annotations); err != nil {
		return err
	}
	next.Annotations[AnnotationConfirmed] = digestOfNames(next.Spec.SecretRefs)
	needed, err := neededBy(mr)
	if err != nil {
		return err
	}
	if next.Annotations[AnnotationDependencies], err = encodeIf(true, needed); err != nil {
		return err
	}
	return e.apply(ctx, owner, next)
}

// forcedFinalizeAfter is how long controllers may take to finalize objects in a forced deletion. The controllers might
// not exist any more.
const forcedFinalizeAfter = "5m"

// inventoryOf returns the objects that a resource-manager has applied, or was about to apply.
func inventoryOf(mr *resourcesv1alpha1.ManagedResource) map[object.Key]bool {
	applied := map[object.Key]bool{}
	for _, entry := range mr.Status.Resources {
		applied[inventoryKey(entry)] = true
	}
	return applied
}

// confirmedObject is an object with the confirmation of its deletion.
type confirmedObject struct {
	key object.Key
	manifestsecret.Document
}

// confirmed returns the objects in a Secret with the annotations that confirm their deletion and, if the step says so, force it or
// make extensions give up the objects.
func (e *Emitter) confirmed(ctx context.Context, key client.ObjectKey, step Step) ([]confirmedObject, error) {
	var secret corev1.Secret
	if err := e.Uncached.Get(ctx, key, &secret); err != nil {
		return nil, err
	}
	objects, err := manifestsecret.Read(&secret, maxBytes)
	if err != nil {
		return nil, err
	}
	documents := make([]confirmedObject, 0, len(objects))
	for _, obj := range objects {
		annotations := obj.GetAnnotations()
		delete(annotations, annotationOperation) // objects that are about to be deleted must not start another operation
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[AnnotationConfirmDeletion] = "true"
		if !step.migrate.IsZero() && obj.GroupVersionKind().Group == extensionsGroup {
			annotations[annotationOperation] = operationMigrate
			annotations[annotationTimestamp] = step.migrate.UTC().Format(time.RFC3339Nano)
		}
		if step.force {
			annotations[AnnotationForceDeletion] = "true"
			annotations[resourcesv1alpha1.AnnotationFinalizeDeletionAfter] = forcedFinalizeAfter
		}
		obj.SetAnnotations(annotations)
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			return nil, err
		}
		documents = append(documents, confirmedObject{
			object.Key{Group: obj.GroupVersionKind().Group, Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()},
			manifestsecret.Document{Name: obj.GetKind() + " " + keyOf(obj).String(), Text: text},
		})
	}
	return documents, nil
}
