package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/istiocluster"
	"github.com/trellis-k8s/trellis/pkg/ownedobject"
)

// change is an EnvoyFilter to write. One of the fields may be nil.
type change struct {
	// desired is nil if the EnvoyFilter must be deleted.
	desired *unstructured.Unstructured
	// present is the EnvoyFilter in the cluster; nil if it does not exist.
	present *filter
}

func (c change) key() types.NamespacedName {
	if c.desired != nil {
		return types.NamespacedName{Namespace: c.desired.GetNamespace(), Name: c.desired.GetName()}
	}
	return types.NamespacedName{Namespace: c.present.Namespace, Name: c.present.Name}
}

// digest returns the digest of the desired EnvoyFilter; empty for a deletion.
func (c change) digest() string {
	if c.desired == nil {
		return ""
	}
	return istiocluster.Digest(c.desired)
}

// differences returns the writes that lead to exactly the desired EnvoyFilters, with deletions last.
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
	var present *metav1.ObjectMeta
	if one.present != nil {
		present = &one.present.ObjectMeta
	}
	filters := r.Dynamic.Resource(filtersResource)
	return ownedobject.Writer[*unstructured.Unstructured]{
		Kind: "EnvoyFilter",
		Client: func(namespace string) ownedobject.Client[*unstructured.Unstructured] {
			return filters.Namespace(namespace)
		},
		Delete: func(ctx context.Context, key types.NamespacedName, options metav1.DeleteOptions) error {
			return filters.Namespace(key.Namespace).Delete(ctx, key.Name, options)
		},
		Digest: istiocluster.Digest,
		Keep:   []fieldowner.Pattern{{"metadata", "labels"}, {"metadata", "annotations"}, {"metadata", "finalizers"}},
		Label:  istiocluster.LabelManagedBy + "=" + istiocluster.ManagedBy, Timeout: requestTimeout,
		Fights: r.fights, Clock: r.Clock, Count: func(result string) { r.Metrics.Inc(result) },
	}.Write(ctx, one.key(), one.desired, present)
}
