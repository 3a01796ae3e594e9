package webhooks

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The labels by which API servers select the objects that they send (gardener-resource-manager, except for the first).
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

// Placement says for which API server a configuration of webhooks is.
type Placement struct {
	// Shoot is set for the cluster of a shoot, in which only system components are handled. Otherwise it is that of a seed or garden
	// cluster, in which all namespaces with a role are.
	Shoot bool
	// NamePrefix stands before "gardener-resource-manager" in the value of the label "app" of the resource-manager's Pods.
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

// always selects the same objects for every API server.
func always(requirements ...metav1.LabelSelectorRequirement) func(Placement) *metav1.LabelSelector {
	return func(Placement) *metav1.LabelSelector { return &metav1.LabelSelector{MatchExpressions: requirements} }
}

// inNamespaces selects the namespaces that the resource-manager cares for: those of a shoot's system components, or those of a seed
// that have a role and hold no such components; and of these the ones that fulfil more requirements.
func inNamespaces(more ...metav1.LabelSelectorRequirement) func(Placement) *metav1.LabelSelector {
	return func(p Placement) *metav1.LabelSelector {
		requirements := []metav1.LabelSelectorRequirement{exists(labelRole), notIn(labelNamespaceName, systemNamespaces...)}
		if p.Shoot {
			requirements = []metav1.LabelSelectorRequirement{in(labelNamespaceName, systemNamespaces...)}
		}
		return &metav1.LabelSelector{MatchExpressions: append(requirements, more...)}
	}
}

// managed selects objects that fulfil requirements; in a shoot, where users have objects of their own, only managed ones.
func managed(requirements ...metav1.LabelSelectorRequirement) func(Placement) *metav1.LabelSelector {
	return func(p Placement) *metav1.LabelSelector {
		if p.Shoot {
			requirements = append([]metav1.LabelSelectorRequirement{in(labelManagedBy, managedByGardener)}, requirements...)
		}
		return &metav1.LabelSelector{MatchExpressions: requirements}
	}
}

// pods selects Pods that another selector does, without static ones, which a kubelet has started already.
func pods(selector func(Placement) *metav1.LabelSelector) func(Placement) *metav1.LabelSelector {
	return func(p Placement) *metav1.LabelSelector {
		selected := selector(p).DeepCopy()
		selected.MatchExpressions = append(selected.MatchExpressions, notIn(labelStaticPod, "true"))
		return selected
	}
}

// others selects Pods that another selector does, without those of the resource-manager itself: while none runs, they could not start
// if they had to wait for an answer.
func others(selector func(Placement) *metav1.LabelSelector) func(Placement) *metav1.LabelSelector {
	return func(p Placement) *metav1.LabelSelector {
		selected := selector(p).DeepCopy()
		selected.MatchExpressions = append(selected.MatchExpressions, notIn(labelApp, p.NamePrefix+appName))
		return selected
	}
}
