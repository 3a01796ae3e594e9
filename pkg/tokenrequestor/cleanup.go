package tokenrequestor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// resources are the resources of the kinds that are cleaned up.
var resources = map[string]schema.GroupVersionResource{
	kindServiceAccount: {Version: "v1", Resource: "serviceaccounts"},
	kindSecret:         {Version: "v1", Resource: "secrets"},
}

// listPage is the number of marked objects that are read per page.
const listPage = 500

// mark returns the label value of objects that this token requestor created. It differs between token requestors, so
// that none deletes the objects of another one.
func (r *Reconciler) mark() string {
	sum := sha256.Sum256([]byte(r.Options.ClusterID + "\n" + r.Options.Class))
	return hex.EncodeToString(sum[:8])
}

// marks reports whether a ServiceAccount gets the label that allows clean-up. New ServiceAccounts get it, and those
// that already have the label of a token requestor, so that the last one that uses a ServiceAccount decides.
func (r *Reconciler) marks(live *corev1.ServiceAccount, created bool) bool {
	_, marked := live.Labels[resourcesv1alpha1.LabelTokenRequestor]
	return r.Options.CleanUp && (created || marked)
}

// sourceMark returns the source Secret for the annotation. If several Secrets reference the same ServiceAccount, the
// first one is kept.
func sourceMark(live *corev1.ServiceAccount, mark string, source types.NamespacedName) string {
	named := live.Annotations[resourcesv1alpha1.AnnotationTokenSource]
	if named != "" && live.Labels[resourcesv1alpha1.LabelTokenRequestor] == mark {
		return named
	}
	return source.String()
}

// markChanges returns the changes of the label and annotation of a Secret in the target cluster. If clean-up is
// enabled, the label of another token requestor is replaced. Otherwise, label and annotation are removed.
func (r *Reconciler) markChanges(target *corev1.Secret) (labels, annotations map[string]any) {
	mark, marked := target.Labels[resourcesv1alpha1.LabelTokenRequestor]
	switch {
	case !marked || r.Options.CleanUp && mark == r.mark():
		return nil, nil
	case r.Options.CleanUp:
		return map[string]any{resourcesv1alpha1.LabelTokenRequestor: r.mark()}, nil
	}
	return map[string]any{resourcesv1alpha1.LabelTokenRequestor: nil}, map[string]any{resourcesv1alpha1.AnnotationTokenSource: nil}
}

// hold records an object that the source Secret references.
func (p *pass) hold(one object) {
	if p.Options.CleanUp {
		p.memories.update(p.name, func(m *memory) { m.held[one] = true })
	}
}

// leave cleans up for a Secret that is deleted, or for which this token requestor is no longer responsible.
func (r *Reconciler) leave(ctx context.Context, source types.NamespacedName) error {
	if err := r.cleanUp(ctx, source, func(object) bool { return false }); err != nil {
		return err
	}
	r.memories.forget(source)
	return nil
}

// cleanUpFormer cleans up the objects that the source Secret no longer references.
func (p *pass) cleanUpFormer(ctx context.Context) error {
	return p.cleanUp(ctx, p.name, func(one object) bool {
		return one == object{kindServiceAccount, p.spec.account} || one == object{kindSecret, p.spec.target}
	})
}

// cleanUp deletes the objects that a source Secret referenced, except objects to keep, objects that other Secrets
// reference, and objects that this token requestor does not own.
func (r *Reconciler) cleanUp(ctx context.Context, source types.NamespacedName, keep func(object) bool) error {
	var errs []error
	for _, one := range r.memories.heldBy(source) {
		if keep(one) {
			continue
		}
		if err := r.deleteUnused(ctx, one); err != nil {
			errs = append(errs, requestError(err,
				"clean up %s of the target cluster, which is no longer referenced by a Secret of the source cluster", one))
			continue
		}
		r.memories.update(source, func(m *memory) { delete(m.held, one) })
	}
	return errors.Join(errs...)
}

// deleteUnused deletes an object that this token requestor owns, unless a source Secret references it.
func (r *Reconciler) deleteUnused(ctx context.Context, one object) error {
	r.objects.Lock()
	defer r.objects.Unlock()
	used, err := r.isNamed(ctx, one)
	if used || err != nil {
		return err
	}
	objects := r.Metadata.Resource(resources[one.kind]).Namespace(one.Namespace)
	meta, err := objects.Get(ctx, one.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || !r.owns(meta) {
		return err
	}
	err = objects.Delete(ctx, one.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &meta.UID, ResourceVersion: &meta.ResourceVersion},
	})
	if err == nil {
		r.Metrics.cleanedUp(one.kind)
		log.FromContext(ctx).Info("Deleted an object that no Secret references any longer",
			"kind", one.kind, "object", one.NamespacedName.String())
	}
	return client.IgnoreNotFound(err)
}

// owns reports whether an object is marked as created by this token requestor for a Secret in its scope, and is not
// part of a ManagedResource.
func (r *Reconciler) owns(meta *metav1.PartialObjectMetadata) bool {
	namespace, _, _ := strings.Cut(meta.Annotations[resourcesv1alpha1.AnnotationTokenSource], "/")
	return meta.Labels[resourcesv1alpha1.LabelTokenRequestor] == r.mark() && r.inScope(namespace) &&
		meta.Annotations[resourcesv1alpha1.AnnotationOrigin] == ""
}

// isNamed reports whether a source Secret references an object.
func (r *Reconciler) isNamed(ctx context.Context, one object) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := r.Source.List(ctx, list, client.UnsafeDisableDeepCopy,
		client.MatchingLabels{resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor})
	if err != nil {
		return false, fmt.Errorf("list the Secrets of the source cluster for the token requestor: %w", err)
	}
	for i := range list.Items {
		named := r.Options.accountOf(list.Items[i].Annotations)
		if one.kind == kindSecret {
			named = targetOf(list.Items[i].Annotations)
		}
		if r.isSource(&list.Items[i]) && named == one.NamespacedName {
			return true, nil
		}
	}
	return false, nil
}

// findMarked lists the objects of the target cluster with the label of this token requestor. It records each object as
// held by its source Secret, and returns these Secrets.
func (r *Reconciler) findMarked(ctx context.Context) ([]types.NamespacedName, error) {
	var sources []types.NamespacedName
	record := func(kind string, meta *metav1.PartialObjectMetadata) {
		if !r.owns(meta) {
			return
		}
		namespace, name, _ := strings.Cut(meta.Annotations[resourcesv1alpha1.AnnotationTokenSource], "/")
		source := types.NamespacedName{Namespace: namespace, Name: name}
		one := object{kind, types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}}
		r.memories.update(source, func(m *memory) { m.held[one] = true })
		sources = append(sources, source)
	}
	for _, kind := range []string{kindServiceAccount, kindSecret} {
		options := metav1.ListOptions{LabelSelector: resourcesv1alpha1.LabelTokenRequestor + "=" + r.mark(), Limit: listPage}
		for {
			page, err := r.Metadata.Resource(resources[kind]).List(ctx, options)
			if err != nil {
				return nil, fmt.Errorf("list the marked objects of kind %s of the target cluster: %w", kind, err)
			}
			for i := range page.Items {
				record(kind, &page.Items[i])
			}
			if options.Continue = page.Continue; options.Continue == "" {
				break
			}
		}
	}
	return sources, nil
}
