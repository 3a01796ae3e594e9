package tokenrequestor

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// predecessor is the field manager with which gardener-resource-manager writes ServiceAccounts.
const predecessor = "gardener-resource-manager"

// ensureAccount applies the ServiceAccount, and returns its UID and whether it created it. It preserves labels of other
// field managers.
func (r *Reconciler) ensureAccount(ctx context.Context, w tokenSpec, source types.NamespacedName) (uid types.UID, created bool, err error) {
	accounts := r.Core.ServiceAccounts(w.account.Namespace)
	live, err := accounts.Get(ctx, w.account.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", false, requestError(err, "read ServiceAccount %s of the target cluster", w.account)
	}
	if created = err != nil; created {
		live = &corev1.ServiceAccount{}
	}
	wanted := corev1ac.ServiceAccount(w.account.Name, w.account.Namespace).WithLabels(w.labels).WithAutomountServiceAccountToken(false)
	if r.marks(live, created) {
		wanted.WithLabels(map[string]string{resourcesv1alpha1.LabelTokenRequestor: r.mark()}).
			WithAnnotations(map[string]string{resourcesv1alpha1.AnnotationTokenSource: sourceMark(live, r.mark(), source)})
	}
	if created {
		if live, err = accounts.Apply(ctx, wanted, applyOptions()); err != nil {
			return "", true, requestError(err, "create ServiceAccount %s of the target cluster (its namespace must exist)", w.account)
		}
		return live.UID, true, nil
	}
	if stale := staleLabels(live, wanted.Labels); len(stale) > 0 {
		if err := r.dropLabels(ctx, live, stale); err != nil {
			return "", false, requestError(err, "remove labels of ServiceAccount %s of the target cluster", w.account)
		}
	}
	if isApplied(live, wanted) {
		return live.UID, false, nil
	}
	_, err = accounts.Apply(ctx, wanted.WithUID(live.UID), applyOptions())
	return live.UID, false, requestError(err, "apply ServiceAccount %s of the target cluster", w.account)
}

func applyOptions() metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: resourcesv1alpha1.TokenFieldManager, Force: true}
}

// isApplied reports whether a ServiceAccount already has the desired state.
func isApplied(live *corev1.ServiceAccount, wanted *corev1ac.ServiceAccountApplyConfiguration) bool {
	if live.AutomountServiceAccountToken == nil || *live.AutomountServiceAccountToken {
		return false
	}
	return holds(live.Labels, wanted.Labels) && holds(live.Annotations, wanted.Annotations) &&
		subset(ownedKeys(live, resourcesv1alpha1.TokenFieldManager, "labels"), wanted.Labels) &&
		subset(ownedKeys(live, resourcesv1alpha1.TokenFieldManager, "annotations"), wanted.Annotations)
}

func holds(live, wanted map[string]string) bool {
	for key, value := range wanted {
		if present, found := live[key]; !found || present != value {
			return false
		}
	}
	return true
}

func subset(keys []string, of map[string]string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { _, found := of[key]; return !found })
}

// staleLabels returns the unwanted labels that gardener-resource-manager set. It returns none if the object is part of
// a ManagedResource, because gardener-resource-manager uses the same field manager for both.
func staleLabels(live *corev1.ServiceAccount, wanted map[string]string) []string {
	if _, applied := live.Annotations[resourcesv1alpha1.AnnotationOrigin]; applied {
		return nil
	}
	return slices.DeleteFunc(ownedKeys(live, predecessor, "labels"), func(key string) bool {
		_, keep := wanted[key]
		_, there := live.Labels[key]
		return keep || !there
	})
}

// ownedKeys returns the labels or annotations that a field manager owns, sorted.
func ownedKeys(live *corev1.ServiceAccount, manager, part string) []string {
	keys := map[string]struct{}{}
	for _, entry := range live.ManagedFields {
		var fields struct {
			Metadata map[string]map[string]any `json:"f:metadata"`
		}
		if entry.Manager != manager || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for key := range fields.Metadata["f:"+part] {
			if name, found := strings.CutPrefix(key, "f:"); found {
				keys[name] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

func (r *Reconciler) dropLabels(ctx context.Context, live *corev1.ServiceAccount, labels []string) error {
	values := map[string]any{}
	for _, key := range labels {
		values[key] = nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.UID, "resourceVersion": live.ResourceVersion, "labels": values,
	}})
	if err != nil {
		return err
	}
	_, err = r.Core.ServiceAccounts(live.Namespace).Patch(ctx, live.Name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: resourcesv1alpha1.TokenFieldManager})
	return err
}
