package target

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// DeleteClaims deletes the PersistentVolumeClaims that a StatefulSet created from its templates: those in its namespace
// with the name <template>-<StatefulSet>-<ordinal> and the labels of its selector. Labels alone are not sufficient,
// because the labels of another StatefulSet may be a superset. Nothing is deleted if the StatefulSet no longer has the
// given UID. The whole StatefulSet is read, but only the metadata of the claims. The error is a conflict if a claim has
// changed in the meantime.
func (o *Objects) DeleteClaims(ctx context.Context, namespace, name string, uid types.UID) error {
	statefulSet, err := o.apps.StatefulSets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || statefulSet.UID != uid ||
		len(statefulSet.Spec.VolumeClaimTemplates) == 0 || len(statefulSet.Spec.Selector.MatchLabels) == 0 {
		return err
	}
	resource := o.metadata.Resource(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")).Namespace(namespace)
	claims, err := resource.List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(statefulSet.Spec.Selector.MatchLabels).String(),
	})
	if err != nil {
		return fmt.Errorf("list the PersistentVolumeClaims in namespace %s: %w", namespace, err)
	}
	for _, claim := range claims.Items {
		if !isClaimOf(statefulSet, claim.Name) || claim.DeletionTimestamp != nil {
			continue
		}
		err := resource.Delete(ctx, claim.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion},
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete PersistentVolumeClaim %s/%s: %w", namespace, claim.Name, err)
		}
	}
	return nil
}

// isClaimOf reports whether a claim has a name that the StatefulSet controller assigns (getPersistentVolumeClaimName in
// pkg/controller/statefulset of Kubernetes): <template>-<StatefulSet>-<ordinal>.
func isClaimOf(statefulSet *appsv1.StatefulSet, claim string) bool {
	return slices.ContainsFunc(statefulSet.Spec.VolumeClaimTemplates, func(template corev1.PersistentVolumeClaim) bool {
		text, found := strings.CutPrefix(claim, template.Name+"-"+statefulSet.Name+"-")
		ordinal, err := strconv.ParseInt(text, 10, 32)
		return found && err == nil && ordinal >= 0 && strconv.FormatInt(ordinal, 10) == text // no leading zeros or signs
	})
}
