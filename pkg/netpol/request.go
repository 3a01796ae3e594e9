package netpol

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Reasons of problems, and of the Events that report them.
//
// +events:on=Service of the target cluster
const (
	ReasonInvalidAnnotation = "InvalidAnnotation"           // Warning: an annotation for network policies cannot be used
	ReasonInvalidService    = "InvalidService"              // Warning: selector or ports of the Service cannot be used for network policies
	ReasonMatchesAll        = "NamespaceSelectorMatchesAll" // Warning: a namespace selector is empty and matches all namespaces
	ReasonKeyTooLong        = "PodLabelSelectorKeyTooLong"  // Warning: the label that gives Pods access is too long and was shortened
	ReasonKeysTooLong       = "PodLabelSelectorKeysTooLong" // Warning: several such labels are too long and were shortened
	ReasonIngressPort       = "IngressPortNotFound"         // Warning: an Ingress names a port that the Service does not have
	ReasonGateway           = "GatewayNotUsable"            // Warning: a Gateway that exposes the Service cannot be used
	ReasonPodPort           = "PodPortNotFound"             // Warning: no Pod has the named port of the Service
)

// Problem is a message to the owner of a Service.
type Problem struct {
	// Reason is a word in CamelCase.
	Reason string
	// Message describes the problem, its location and the remedy.
	Message string
}

// Request holds the validated ports and annotations of a Service.
type Request struct {
	service  types.NamespacedName
	selector metav1.LabelSelector
	// servicePorts are the ports of the Service, in its order, without invalid ones.
	servicePorts []servicePort
	// aliases are those of from-<alias>-allowed-ports, sorted by name.
	aliases []alias
	// world are the ports that are open to everyone; nil if the Service does not have the annotation.
	world *[]Port
	// Selectors select the other namespaces whose Pods may connect to the Service. A namespace must match at least one of
	// them.
	Selectors []labels.Selector
	// namespace represents the Service's namespace in labels of Pods in other namespaces.
	namespace string
	// unreadable marks the invalid annotations.
	unreadable unreadable
	// problems are in the order of the annotations and ports that they are about.
	problems []Problem
	// qualifies is set if the Service can have policies.
	qualifies bool
}

// servicePort is a port of a Service.
type servicePort struct {
	name   string
	number int32
	// target is the port of the Pods.
	target Port
}

type alias struct {
	name  string
	ports []Port
}

// unreadable marks the invalid annotations. Policies that were created for their previous values are kept.
type unreadable struct {
	selectors, namespace, world bool
	aliases                     []string
}

// Read reads the ports and annotations of a Service.
func Read(service *corev1.Service) *Request {
	r := &Request{
		service:   types.NamespacedName{Namespace: service.Namespace, Name: service.Name},
		selector:  metav1.LabelSelector{MatchLabels: service.Spec.Selector},
		namespace: service.Namespace,
		// An empty selector would select all Pods of the namespace.
		qualifies: service.DeletionTimestamp == nil && len(service.Spec.Selector) > 0,
	}
	if !r.qualifies {
		return r
	}
	if texts := validation.IsValidLabelValue(service.Name); len(texts) > 0 {
		r.qualifies = false
		r.complain(ReasonInvalidService, "The name of the Service cannot be the value of a label: %s. No policies are created for it.",
			strings.Join(texts, "; "))
		return r
	}
	r.readPorts(service.Spec.Ports)
	r.readNamespaces(service.Annotations)
	for _, key := range slices.Sorted(maps.Keys(service.Annotations)) {
		if strings.HasPrefix(key, annotationAliasPrefix) {
			r.readFrom(key, service.Annotations[key])
		}
	}
	return r
}

func (r *Request) complain(reason, format string, values ...any) {
	r.problems = append(r.problems, Problem{Reason: reason, Message: fmt.Sprintf(format, values...)})
}

func (r *Request) complainOf(annotation string, err error, consequence string) {
	r.complain(ReasonInvalidAnnotation, "Annotation %s: %s. %s", annotation, err, consequence)
}

func (r *Request) readPorts(ports []corev1.ServicePort) {
	for _, port := range ports {
		target, err := targetOf(port)
		if err != nil {
			r.complain(ReasonInvalidService, "No policies are created for port %d of the Service: %s.", port.Port, err)
			continue
		}
		r.servicePorts = append(r.servicePorts, servicePort{name: port.Name, number: port.Port, target: target})
	}
}

// readNamespaces reads the annotations about Pods in other namespaces.
func (r *Request) readNamespaces(annotations map[string]string) {
	if text, found := annotations[AnnotationNamespaceSelectors]; found {
		selectors, err := readSelectors(text)
		if err != nil {
			r.unreadable.selectors = true
			r.complainOf(AnnotationNamespaceSelectors, err, "Namespaces are neither added nor removed until this is fixed.")
		}
		r.Selectors = selectors
		if slices.ContainsFunc(selectors, labels.Selector.Empty) {
			r.complain(ReasonMatchesAll, "Annotation %s has a selector that matches every namespace: policies are created for each of them.",
				AnnotationNamespaceSelectors)
		}
	}
	if text, found := annotations[AnnotationNamespaceAlias]; found {
		r.namespace = text
		if texts := validation.IsQualifiedName(domain + shorten("to-"+text+"-x", maxLabelName)); len(texts) > 0 {
			r.unreadable.namespace = true
			r.complainOf(AnnotationNamespaceAlias, fmt.Errorf("%q cannot be part of a label's key", text),
				"Policies for other namespaces are not changed until this is fixed.")
		}
	}
}

// readFrom reads an annotation whose key starts like from-<alias>-allowed-ports and from-world-to-ports.
func (r *Request) readFrom(key, text string) {
	if key == AnnotationFromWorld {
		ports, err := readPorts(text)
		if err != nil {
			r.unreadable.world = true
			r.complainOf(key, err, "Traffic that it allowed before remains allowed until this is fixed.")
			return
		}
		r.world = &ports
		return
	}
	name, isAlias := strings.CutSuffix(strings.TrimPrefix(key, annotationAliasPrefix), annotationAliasSuffix)
	if !isAlias {
		if strings.Contains(key, annotationAliasSuffix) {
			r.complainOf(key, fmt.Errorf("the key must end with %s", annotationAliasSuffix), "It has no effect.")
		}
		return
	}
	if err := checkAlias(name); err != nil {
		r.complainOf(key, err, "It has no effect.")
		return
	}
	ports, err := readPorts(text)
	if err != nil {
		r.unreadable.aliases = append(r.unreadable.aliases, name)
		r.complainOf(key, err, "Traffic that it allowed before remains allowed until this is fixed.")
		return
	}
	slices.SortFunc(ports, comparePorts)
	r.aliases = append(r.aliases, alias{name: name, ports: ports})
}

func checkAlias(name string) error {
	key, _ := toKey(name)
	if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsDNS1123Subdomain("via-"+name)) > 0 {
		return fmt.Errorf("%q cannot be part of a label's key and of a NetworkPolicy's name: use lower-case letters, digits and dashes", name)
	}
	return nil
}

func readSelectors(text string) ([]labels.Selector, error) {
	var list []*metav1.LabelSelector
	if err := decode(text, &list); err != nil {
		return nil, err
	}
	if list == nil {
		return nil, errors.New("must be a list of label selectors, for example [{\"matchLabels\":{\"kubernetes.io/metadata.name\":\"b\"}}]")
	}
	result := make([]labels.Selector, 0, len(list))
	for i, one := range list {
		if one == nil {
			return nil, fmt.Errorf("selector %d is null", i)
		}
		if errs := metav1validation.ValidateLabelSelector(one, metav1validation.LabelSelectorValidationOptions{}, nil); len(errs) > 0 {
			return nil, fmt.Errorf("selector %d: %w", i, errs.ToAggregate())
		}
		selector, err := metav1.LabelSelectorAsSelector(one)
		if err != nil {
			return nil, fmt.Errorf("selector %d: %w", i, err)
		}
		result = append(result, selector)
	}
	return result, nil
}

// Keys returns the keys of the labels by which Pods in the Service's namespace, and in other namespaces, declare that
// they connect to it.
func (r *Request) Keys() []string {
	var keys []string
	add := func(what string) {
		own, _ := toKey(what)
		foreign, _ := toKey(r.namespace + "-" + what)
		keys = append(keys, own, foreign)
	}
	for _, port := range r.servicePorts {
		add(port.target.id(r.service.Name))
	}
	for _, alias := range r.aliases {
		add(alias.name)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
