package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/istiocluster"
)

// errAltered reports that EnvoyFilters are changed as they are written.
var errAltered = errors.New("something, such as a mutating webhook, changes the EnvoyFilter after every write: exclude from it " +
	"objects with the label " + istiocluster.LabelManagedBy + "=" + istiocluster.ManagedBy)

// change is an EnvoyFilter that must be written; one of its fields may be nil.
type change struct {
	// desired is nil if the EnvoyFilter must be deleted.
	desired *unstructured.Unstructured
	// present is the one in the cluster; nil if it does not exist.
	present *filter
}

func (c change) key() types.NamespacedName {
	if c.desired != nil {
		return types.NamespacedName{Namespace: c.desired.GetNamespace(), Name: c.desired.GetName()}
	}
	return types.NamespacedName{Namespace: c.present.Namespace, Name: c.present.Name}
}

// digest returns that of what is desired; empty for a deletion.
func (c change) digest() string {
	if c.desired == nil {
		return ""
	}
	return istiocluster.Digest(c.desired)
}

// differences returns the writes that lead to exactly the desired EnvoyFilters, deletions last.
func differences(desired []*unstructured.Unstructured, existing []*filter) []change {
	present := map[string]*filter{}
	for _, one := range existing {
		present[one.Namespace] = one
	}
	var changes []change
	for _, one := range desired {
		found := present[one.GetNamespace()]
		if found == nil || found.digest != istiocluster.Digest(one) {
			changes = append(changes, change{desired: one, present: found})
		}
		delete(present, one.GetNamespace())
	}
	for _, one := range existing {
		if present[one.Namespace] != nil && one.DeletionTimestamp == nil {
			changes = append(changes, change{present: one})
		}
	}
	return changes
}

func (r *Reconciler) write(ctx context.Context, one change) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if one.present != nil {
		r.fights.Observe(one.key(), one.digest(), r.Clock.Now())
	} else {
		r.fights.Forget(one.key())
	}
	var what string
	var err error
	switch {
	case one.desired == nil:
		what, err = "deleted", r.delete(ctx, one.present)
	case one.present == nil:
		what, err = "created", r.apply(ctx, one.desired)
	default:
		what, err = "updated", r.apply(ctx, one.desired)
	}
	if err != nil {
		r.Metrics.wrote("failed")
		return fmt.Errorf("EnvoyFilter %s: %w", one.key(), err)
	}
	r.Metrics.wrote(what)
	log.FromContext(ctx).V(1).Info("Wrote an EnvoyFilter", "change", what, "filter", one.key().String())
	return nil
}

// delete deletes an EnvoyFilter if it still is as it was seen.
func (r *Reconciler) delete(ctx context.Context, present *filter) error {
	err := r.Dynamic.Resource(filtersResource).Namespace(present.Namespace).Delete(ctx, present.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &present.UID, ResourceVersion: &present.ResourceVersion},
	})
	return unlessGone(err)
}

// unlessGone passes over that an object or its namespace is going or gone.
func unlessGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // an event follows
	}
	return err
}

// apply applies an EnvoyFilter. What others own of it beside labels and annotations goes.
func (r *Reconciler) apply(ctx context.Context, desired *unstructured.Unstructured) error {
	_, asDesired, err := fieldowner.Imposition[*unstructured.Unstructured]{
		Apply: func() (*unstructured.Unstructured, error) { return r.applyOnce(ctx, desired) },
		Patch: func(live *unstructured.Unstructured, patch []byte) error {
			_, err := r.Dynamic.Resource(filtersResource).Namespace(live.GetNamespace()).Patch(ctx, live.GetName(), types.JSONPatchType, patch,
				metav1.PatchOptions{FieldManager: resourcesv1alpha1.FieldManager})
			return err
		},
		AsDesired: func(live *unstructured.Unstructured) bool {
			return istiocluster.Digest(live) == istiocluster.Digest(desired)
		},
		Keep: []fieldowner.Pattern{{"metadata", "labels"}, {"metadata", "annotations"}, {"metadata", "finalizers"}},
	}.Impose()
	if err == nil && !asDesired {
		return errAltered
	}
	return unlessGone(err)
}

func (r *Reconciler) applyOnce(ctx context.Context, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(desired)
	if err != nil {
		return nil, err
	}
	return r.Dynamic.Resource(filtersResource).Namespace(desired.GetNamespace()).Patch(ctx, desired.GetName(), types.ApplyPatchType, data,
		metav1.PatchOptions{FieldManager: resourcesv1alpha1.FieldManager, Force: ptr.To(true)})
}
