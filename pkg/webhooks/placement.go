package webhooks

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The labels by which API servers select objects, as in gardener-resource-manager. Kubernetes sets the first one.
const (
	labelNamespaceName = "kubernetes.io/metadata.name" // set by Kubernetes on every namespace
	labelRole          = "gardener.cloud/role"
	labelManagedBy     = "resources.gardener.cloud/managed-by"
	labelApp           = "app"
	labelStaticPod     = "static-pod"

	managedByGardener = "gardener"
	appName           = "gardener-resource-manager"
)

// systemNamespaces hold a shoot's system components.
var systemNamespaces = []string{"kube-system", "kubernetes-dashboard"}

// Placement identifies the API server that a webhook configuration is for.
type Placement struct {
	// Shoot is set for the cluster of a shoot, where the webhooks handle only system components. It is not set for a seed or
	// garden cluster, where they handle all namespaces with a role.
	Shoot bool
	// NamePrefix is the prefix of "gardener-resource-manager" in the label "app" of the resource-manager's Pods.
	NamePrefix string
}

func in(key string, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
}

func notIn(key string, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: values}
}

func exists(key string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists}
}

func absent(key string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist}
}

// everything selects all objects.
func everything(Placement) *metav1.LabelSelector { return &metav1.LabelSelector{} }

// always selects the same objects in every placement.
func always(requirements ...metav1.LabelSelectorRequirement) func(Placement) *metav1.LabelSelector {
	return func(Placement) *metav1.LabelSelector { return &metav1.LabelSelector{MatchExpressions: requirements} }
}

// inNamespaces selects the namespaces that the resource-manager handles, if they also match more. In a shoot, these are
// the namespaces of system components. In a seed, these are the namespaces with a role, except those of system
// components.
func inNamespaces(more ...metav1.LabelSelectorRequirement) func(Placement) *metav1.LabelSelector {
	return func(p Placement) *metav1.LabelSelector {
		requirements := []metav1.LabelSelectorRequirement{exists(labelRole), notIn(labelNamespaceName, systemNamespaces...)}
		if p.Shoot {
			requirements = []metav1.LabelSelectorRequirement{in(labelNamespaceName, systemNamespaces...)}
		}
		return &metav1.LabelSelector{MatchExpressions: append(requirements, more...)}
	}
}

// managed selects objects that match requirements. In a shoot, where users have their own objects, it selects only
// managed objects.
func managed(requirements ...metav1.LabelSelectorRequirement) func(Placement) *metav1.LabelSelector {
	return func(p Placement) *metav1.LabelSelector {
		if p.Shoot {
			requirements = append([]metav1.LabelSelectorRequirement{in(labelManagedBy, managedByGardener)}, requirements...)
		}
		return &metav1.LabelSelector{MatchExpressions: requirements}
	}
}

// pods selects the Pods of another selector, except for static Pods, which a kubelet has already started.
func pods(selector func(Placement) *metav1.LabelSelector) func(Placement) *metav1.LabelSelector {
	return func(p Placement) *metav1.LabelSelector {
		selected := selector(p).DeepCopy()
		selected.MatchExpressions = append(selected.MatchExpressions, notIn(labelStaticPod, "true"))
		return selected
	}
}

// others selects the Pods of another selector, except for those of the resource-manager itself. They could not start if
// they had to wait for a response of the resource-manager.
func others(selector func(Placement) *metav1.LabelSelector) func(Placement) *metav1.LabelSelector {
	return func(p Placement) *metav1.LabelSelector {
		selected := selector(p).DeepCopy()
		selected.MatchExpressions = append(selected.MatchExpressions, notIn(labelApp, p.NamePrefix+appName))
		return selected
	}
}
