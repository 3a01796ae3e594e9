// Package netpol computes the network policies for a Service. It has no client, and its results depend only on the
// arguments. The rules, keys, names and texts are those of gardener-resource-manager.
package netpol

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// domain is the prefix of all keys except AnnotationDescription.
const domain = "networking.resources.gardener.cloud/"

const (
	// LabelServiceName is on every policy. Its value is the name of the Service that the policy is for.
	LabelServiceName = domain + "service-name"
	// LabelServiceNamespace is on every policy. Its value is the namespace of that Service.
	LabelServiceNamespace = domain + "service-namespace"
	// AnnotationDescription describes the purpose of each policy.
	AnnotationDescription = "gardener.cloud/description"

	// AnnotationNamespaceSelectors is a JSON list of label selectors of other namespaces whose Pods may connect to the
	// Service.
	AnnotationNamespaceSelectors = domain + "namespace-selectors"
	// AnnotationNamespaceAlias replaces the name of the Service's namespace in the labels of Pods in other namespaces.
	AnnotationNamespaceAlias = domain + "pod-label-selector-namespace-alias"
	// AnnotationFromWorld is a JSON list of ports that accept traffic from everywhere; an empty list means all ports.
	AnnotationFromWorld = domain + "from-world-to-ports"

	// annotationAliasPrefix and annotationAliasSuffix enclose an alias in the key of an annotation with a JSON list of
	// ports.
	annotationAliasPrefix = domain + "from-"
	annotationAliasSuffix = "-allowed-ports"

	// LabelPrefix begins the keys of the labels by which a Pod declares its peers.
	LabelPrefix = domain + "to-"
	// LabelValue is the value of these labels.
	LabelValue = "allowed"
)

const (
	// maxLabelName is the maximum length of the part of a label key after the slash in Kubernetes.
	maxLabelName = 63
	// maxPolicyName is the maximum length of the name of a NetworkPolicy in Kubernetes.
	maxPolicyName = 253
	// digits is the number of hexadecimal digits of a hash in names.
	digits = 5
)

// Relevant reports whether an annotation of a Service affects its policies.
func Relevant(annotation string) bool { return strings.HasPrefix(annotation, domain) }

// AliasAnnotation returns the key of the annotation of a Service with the JSON list of ports for Pods with the label of
// an alias.
func AliasAnnotation(alias string) string {
	return annotationAliasPrefix + alias + annotationAliasSuffix
}

// toKey returns the key of the label by which a Pod declares that it connects to a peer, and whether the key was
// shortened.
func toKey(what string) (key string, shortened bool) {
	part := "to-" + what
	short := shorten(part, maxLabelName)
	return domain + short, short != part
}

// shorten returns a text of at most limit bytes. A shortened text is the beginning of the text, a dash and digits of
// the hash of the whole text.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:limit-digits-1] + "-" + hash(text)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}

// worldName returns the name of the policy that allows traffic from everywhere.
func worldName(service string) string {
	return shorten("ingress-to-"+service+"-from-world", maxPolicyName)
}

// suffixIngressController is the suffix of the names of policies for the Pods of the ingress controller.
const suffixIngressController = "-from-ingress-controller"

// suffixIstio is the suffix of the names of policies for gateways, except those for ingress from another namespace.
const suffixIstio = "-from-istio"

// alternative returns the name of a policy if a policy of another Service has its usual name.
func alternative(name string, service types.NamespacedName) string {
	return shorten(name+"-"+hash(service.String()), maxPolicyName)
}
