package netpol

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Digest returns a hash of the parts of a policy that this package sets: the spec, the labels with the name of the
// Service, and the description.
func Digest(policy *networkingv1.NetworkPolicy) string {
	text, err := json.Marshal([]any{
		policy.Labels[LabelServiceNamespace], policy.Labels[LabelServiceName], policy.Annotations[AnnotationDescription], policy.Spec,
	})
	if err != nil {
		return "" // not a valid digest; unreachable, because policies can always be encoded as JSON
	}
	sum := sha256.Sum256(text)
	return base64.RawStdEncoding.EncodeToString(sum[:15])
}

// ServiceOf returns the Service of a policy, according to the labels of the policy.
func ServiceOf(policy metav1.Object) types.NamespacedName {
	labels := policy.GetLabels()
	return types.NamespacedName{Namespace: labels[LabelServiceNamespace], Name: labels[LabelServiceName]}
}

// ExistingOf returns the relevant fields of a policy in the cluster.
func ExistingOf(policy *networkingv1.NetworkPolicy) Existing {
	existing := Existing{Namespace: policy.Namespace, Name: policy.Name, Peer: policy.Namespace}
	note := func(peer string, pods *metav1.LabelSelector) {
		key := labelKeyOf(pods)
		switch {
		case key != "":
			existing.LabelKey, existing.Peer = key, peer
		case pods != nil && len(pods.MatchLabels) > 0 && !strings.HasSuffix(policy.Name, suffixIngressController):
			existing.ForGateways = true
		}
	}
	for _, rule := range policy.Spec.Ingress {
		for _, from := range rule.From {
			peer := policy.Namespace
			if from.NamespaceSelector != nil {
				peer = from.NamespaceSelector.MatchLabels[corev1.LabelMetadataName]
			}
			note(peer, from.PodSelector)
		}
	}
	if len(policy.Spec.Egress) > 0 {
		note(policy.Namespace, &policy.Spec.PodSelector)
	}
	return existing
}

// labelKeyOf returns the key of the label in a selector by which Pods declare their peer; empty if the selector has
// another form.
func labelKeyOf(pods *metav1.LabelSelector) string {
	if pods == nil || len(pods.MatchLabels) != 1 {
		return ""
	}
	for key, value := range pods.MatchLabels {
		if strings.HasPrefix(key, LabelPrefix) && value == LabelValue {
			return key
		}
	}
	return ""
}
