package project

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// quotaName is the name of the ResourceQuota in the namespace of each Project.
const quotaName = "gardener"

// quotaOf returns the first configured ResourceQuota whose selector matches the labels of a Project; nil if none does.
func quotaOf(project *corev1beta1.Project, configured []v1alpha1.QuotaConfiguration) (*corev1.ResourceQuota, error) {
	for i, one := range configured {
		selector, err := metav1.LabelSelectorAsSelector(one.ProjectSelector)
		if err != nil {
			return nil, fmt.Errorf("controllers.project.quotas[%d].projectSelector of the configuration: %w", i, err)
		}
		if selector.Matches(labels.Set(project.Labels)) {
			return one.Config, nil
		}
	}
	return nil, nil
}

// mergeQuota returns the ResourceQuota of a namespace, and whether it has to be written. present is the existing one, or nil. The
// configuration defines which resources are limited. Values that exist are kept, since they are raised by hand.
func mergeQuota(project *corev1beta1.Project, configured, present *corev1.ResourceQuota) (quota *corev1.ResourceQuota, changed bool) {
	if present == nil {
		present = &corev1.ResourceQuota{Spec: *configured.Spec.DeepCopy()}
		changed = true
	}
	quota = present.DeepCopy()
	quota.Namespace, quota.Name = namespaceOf(project), quotaName
	quota.Labels, quota.Annotations = merge(present.Labels, configured.Labels), merge(present.Annotations, configured.Annotations)
	quota.Spec.Hard = nil
	for resource, limit := range configured.Spec.Hard {
		if kept, exists := present.Spec.Hard[resource]; exists {
			limit = kept
		}
		if quota.Spec.Hard == nil {
			quota.Spec.Hard = corev1.ResourceList{}
		}
		quota.Spec.Hard[resource] = limit
	}
	own := owner(project)
	quota.OwnerReferences = append(slices.DeleteFunc(quota.OwnerReferences, func(reference metav1.OwnerReference) bool {
		return reference.UID == own.UID || reference.Controller != nil && *reference.Controller
	}), own)
	return quota, changed || !equality.Semantic.DeepEqual(quota.Spec, present.Spec) || !equality.Semantic.DeepEqual(quota.Labels, present.Labels) ||
		!equality.Semantic.DeepEqual(quota.Annotations, present.Annotations) ||
		!equality.Semantic.DeepEqual(quota.OwnerReferences, present.OwnerReferences)
}

// merge returns the entries of both maps. Those of the second have precedence.
func merge(first, second map[string]string) map[string]string {
	if len(first)+len(second) == 0 {
		return nil
	}
	merged := make(map[string]string, len(first)+len(second))
	maps.Copy(merged, first)
	maps.Copy(merged, second)
	return merged
}
