// Package netpol derives network policies from Services: it decides which ones a Service asks for. It has no client, and what it
// returns depends on its arguments alone. The rules, keys, names and texts are those of gardener-resource-manager.
package netpol

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// domain is that of all keys but AnnotationDescription.
const domain = "networking.resources.gardener.cloud/"

const (
	// LabelServiceName is on every policy and has the name of the Service that it is made for.
	LabelServiceName = domain + "service-name"
	// LabelServiceNamespace is on every policy and has the namespace of that Service.
	LabelServiceNamespace = domain + "service-namespace"
	// AnnotationDescription says on every policy what it is for.
	AnnotationDescription = "gardener.cloud/description"

	// AnnotationNamespaceSelectors has a JSON list of label selectors of other namespaces whose Pods may talk to the Service.
	AnnotationNamespaceSelectors = domain + "namespace-selectors"
	// AnnotationNamespaceAlias has what stands for the Service's namespace in the labels of Pods in other namespaces.
	AnnotationNamespaceAlias = domain + "pod-label-selector-namespace-alias"
	// AnnotationFromWorld has a JSON list of ports that everybody may talk to; an empty list means all ports.
	AnnotationFromWorld = domain + "from-world-to-ports"

	// annotationAliasPrefix and annotationAliasSuffix enclose an alias in the key of an annotation with a JSON list of ports.
	annotationAliasPrefix = domain + "from-"
	annotationAliasSuffix = "-allowed-ports"

	// LabelPrefix begins the keys of the labels by which a Pod declares its peers.
	LabelPrefix = domain + "to-"
	// LabelValue is the value of these labels.
	LabelValue = "allowed"
)

const (
	// maxLabelName is how long the part of a label's key after the slash may be in Kubernetes.
	maxLabelName = 63
	// maxPolicyName is how long the name of a NetworkPolicy may be in Kubernetes.
	maxPolicyName = 253
	// digits is how many hexadecimal digits of a hash distinguish names.
	digits = 5
)

// Relevant reports whether an annotation of a Service affects its policies.
func Relevant(annotation string) bool { return strings.HasPrefix(annotation, domain) }

// AliasAnnotation returns the annotation of a Service with a JSON list of ports that Pods with the label of an alias may talk to.
func AliasAnnotation(alias string) string {
	return annotationAliasPrefix + alias + annotationAliasSuffix
}

// toKey returns the key of the label with which a Pod says that it talks to something, and whether it had to be shortened.
func toKey(what string) (key string, shortened bool) {
	part := "to-" + what
	short := shorten(part, maxLabelName)
	return domain + short, short != part
}

// shorten returns a text of at most the given number of bytes: its beginning, a dash and digits of the hash of the whole text.
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

// worldName returns the name of the policy that lets in everybody.
func worldName(service string) string {
	return shorten("ingress-to-"+service+"-from-world", maxPolicyName)
}

// suffixIngressController ends the names of policies for the Pods of the ingress controller.
const suffixIngressController = "-from-ingress-controller"

// suffixIstio ends the names of policies for gateways, but of those for ingress from another namespace.
const suffixIstio = "-from-istio"

// alternative returns the name that a policy gets if another Service has one of its own name.
func alternative(name string, service types.NamespacedName) string {
	return shorten(name+"-"+hash(service.String()), maxPolicyName)
}
