package netpol

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// builder collects the policies of a Service.
type builder struct {
	*Request
	input Input
	// peers are the other namespaces whose Pods may connect to the Service, sorted.
	peers    []string
	policies map[types.NamespacedName]*networkingv1.NetworkPolicy
	// longKeys are the shortened label keys, by the full key.
	longKeys map[string]string
	problems []Problem
}

func (b *builder) complainOnce(reason, format string, values ...any) {
	problem := Problem{Reason: reason, Message: fmt.Sprintf(format, values...)}
	if !slices.Contains(b.problems, problem) {
		b.problems = append(b.problems, problem)
	}
}

// key returns the key of the label by which a Pod declares its peer.
func (b *builder) key(what string) string {
	key, shortened := toKey(what)
	if shortened {
		b.longKeys["to-"+what] = key
	}
	return key
}

func (b *builder) reportLongKeys() {
	if len(b.longKeys) == 0 {
		return
	}
	reason := ReasonKeyTooLong
	if len(b.longKeys) > 1 {
		reason = ReasonKeysTooLong
	}
	var texts []string
	for _, long := range slices.Sorted(maps.Keys(b.longKeys)) {
		texts = append(texts, fmt.Sprintf("%s instead of %s", b.longKeys[long], long))
	}
	b.complainOnce(reason, "Keys of Pods' labels are longer than %d characters. Use the shortened ones: %s.",
		maxLabelName, strings.Join(texts, ", "))
}

// allow adds a pair of policies, one for each side, that allow the Pods in from to connect to a port of the Service's
// Pods. The suffixes are appended to the names of the policies.
func (b *builder) allow(port Port, id string, from Pods, ingressSuffix, egressSuffix string) {
	ofService := b.service.Namespace + "/" + b.service.Name
	protocol, number := string(port.Protocol), strings.TrimPrefix(port.String(), string(port.Protocol)+"/")
	ports := []networkingv1.NetworkPolicyPort{port.forPolicy()}
	prefix, fromNamespace, toNamespace := "egress-to-", (*metav1.LabelSelector)(nil), (*metav1.LabelSelector)(nil)
	if from.Namespace != b.service.Namespace {
		prefix += b.service.Namespace + "-"
		fromNamespace, toNamespace = namespaceNamed(from.Namespace), namespaceNamed(b.service.Namespace)
	}
	b.add(b.service.Namespace, "ingress-to-"+id+ingressSuffix,
		fmt.Sprintf("Allows ingress %s traffic to port %s for pods selected by the %s service selector "+
			"from pods running in namespace %s labeled with %v.", protocol, number, ofService, from.Namespace, from.Selector),
		networkingv1.NetworkPolicySpec{
			PodSelector: b.selector,
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From:  []networkingv1.NetworkPolicyPeer{{PodSelector: from.Selector.DeepCopy(), NamespaceSelector: fromNamespace}},
				Ports: ports,
			}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		})
	b.add(from.Namespace, prefix+id+egressSuffix,
		fmt.Sprintf("Allows egress %s traffic to port %s from pods running in namespace %s labeled with %v "+
			"to pods selected by the %s service selector.", protocol, number, from.Namespace, from.Selector, ofService),
		networkingv1.NetworkPolicySpec{
			PodSelector: from.Selector,
			Egress: []networkingv1.NetworkPolicyEgressRule{{
				To:    []networkingv1.NetworkPolicyPeer{{PodSelector: b.selector.DeepCopy(), NamespaceSelector: toNamespace}},
				Ports: ports,
			}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		})
}

// fromWorld allows traffic from everywhere to the ports of the annotation.
func (b *builder) fromWorld() {
	if b.world == nil {
		return
	}
	var ports []networkingv1.NetworkPolicyPort
	texts := []string{}
	for _, port := range *b.world {
		ports = append(ports, port.forPolicy())
		texts = append(texts, port.String())
	}
	b.add(b.service.Namespace, worldName(b.service.Name),
		fmt.Sprintf("Allows ingress traffic from everywhere to ports %v for pods selected by the %s/%s service selector.",
			texts, b.service.Namespace, b.service.Name),
		networkingv1.NetworkPolicySpec{
			PodSelector: b.selector,
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: ports}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		})
}

func namespaceNamed(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}

// add adds a policy. If a policy with the same name exists for the same Pods, the rules are merged into it. If it
// exists for other Pods, the new policy gets a different name, so that both apply.
func (b *builder) add(namespace, name, description string, spec networkingv1.NetworkPolicySpec) {
	key := types.NamespacedName{Namespace: namespace, Name: shorten(name, maxPolicyName)}
	if b.input.Taken[key] {
		key.Name = alternative(key.Name, b.service)
	}
	if present := b.policies[key]; present != nil && !equality.Semantic.DeepEqual(present.Spec.PodSelector, spec.PodSelector) {
		key.Name = shorten(key.Name+"-"+hash(textOf(spec.PodSelector)), maxPolicyName)
	}
	if present := b.policies[key]; present != nil {
		merge(present, description, spec)
		return
	}
	if texts := validation.IsDNS1123Subdomain(key.Name); len(texts) > 0 {
		b.complainOnce(ReasonInvalidService, "NetworkPolicy %s cannot exist: %s.", key, strings.Join(texts, "; "))
		return
	}
	b.policies[key] = &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels:      map[string]string{LabelServiceName: b.service.Name, LabelServiceNamespace: b.service.Namespace},
			Annotations: map[string]string{AnnotationDescription: description},
		},
		Spec: spec,
	}
}

// merge adds the missing rules of a spec to a policy for the same Pods.
func merge(policy *networkingv1.NetworkPolicy, description string, spec networkingv1.NetworkPolicySpec) {
	policy.Spec.Ingress = appendNew(policy.Spec.Ingress, spec.Ingress)
	policy.Spec.Egress = appendNew(policy.Spec.Egress, spec.Egress)
	if text := policy.Annotations[AnnotationDescription]; !strings.Contains(text, description) {
		policy.Annotations[AnnotationDescription] = text + " " + description
	}
}

func appendNew[T any](present, more []T) []T {
	for _, one := range more {
		if !slices.ContainsFunc(present, func(other T) bool { return equality.Semantic.DeepEqual(one, other) }) {
			present = append(present, one)
		}
	}
	return present
}

func textOf(selector metav1.LabelSelector) string {
	text, err := json.Marshal(selector)
	if err != nil {
		return fmt.Sprint(selector) // unreachable: the selector was decoded from JSON
	}
	return string(text)
}
