package flow

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/manifestsecret"
	"github.com/trellis-k8s/trellis/pkg/references"
)

// confirm writes a revision of a bundle that differs from the last one in that all objects confirm their deletion. It is made from the
// Secrets, and not from a plan, which may not be able to compute the bundle any more.
func (e *Emitter) confirm(ctx context.Context, owner Owner, step Step) error {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := e.Uncached.Get(ctx, client.ObjectKey{Namespace: step.Key.Namespace, Name: step.Key.Name}, mr); err != nil {
		return client.IgnoreNotFound(err)
	}
	if mr.UID != step.uid || !owner.owns(mr.Labels) {
		return apierrors.NewConflict(resourcesv1alpha1.SchemeGroupVersion.WithResource("managedresources").GroupResource(), mr.Name,
			fmt.Errorf("it has been created again"))
	}
	var documents []manifestsecret.Document
	for _, reference := range mr.Spec.SecretRefs {
		confirmed, err := e.confirmed(ctx, client.ObjectKey{Namespace: mr.Namespace, Name: reference.Name}, step.force)
		if err != nil {
			return err
		}
		documents = append(documents, confirmed...)
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
	next.Spec.SecretRefs = refs(secrets)
	if err := references.InjectAnnotations(next); err != nil {
		return err
	}
	for key, value := range mr.Annotations {
		if strings.HasPrefix(key, keyPrefix) {
			next.Annotations[key] = value
		}
	}
	next.Annotations[AnnotationConfirmed] = digestOfNames(next.Spec.SecretRefs)
	return e.apply(ctx, owner, next)
}

// forcedFinalizeAfter is how long the controllers of objects have for a deletion that is forced. They may not exist any more.
const forcedFinalizeAfter = "5m"

// confirmed returns the objects in a Secret with the confirmation of their deletion, and of its being forced.
func (e *Emitter) confirmed(ctx context.Context, key client.ObjectKey, force bool) ([]manifestsecret.Document, error) {
	var secret corev1.Secret
	if err := e.Uncached.Get(ctx, key, &secret); err != nil {
		return nil, err
	}
	objects, err := manifestsecret.Read(&secret, maxBytes)
	if err != nil {
		return nil, err
	}
	documents := make([]manifestsecret.Document, 0, len(objects))
	for _, obj := range objects {
		annotations := obj.GetAnnotations()
		delete(annotations, annotationOperation) // what is deleted next is asked for nothing else
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[AnnotationConfirmDeletion] = "true"
		if force {
			annotations[AnnotationForceDeletion] = "true"
			annotations[resourcesv1alpha1.AnnotationFinalizeDeletionAfter] = forcedFinalizeAfter
		}
		obj.SetAnnotations(annotations)
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			return nil, err
		}
		documents = append(documents, manifestsecret.Document{Name: obj.GetKind() + " " + keyOf(obj).String(), Text: text})
	}
	return documents, nil
}
