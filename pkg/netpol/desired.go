package netpol

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Config is the part of the configuration that affects policies.
type Config struct {
	// NamespaceSelectors select the namespaces whose Services get policies. A namespace must match at least one of them.
	// Empty selects all.
	NamespaceSelectors []labels.Selector
	// IngressController selects the Pods of the ingress controller; nil if Ingresses are ignored.
	IngressController *Pods
}

// Pods selects Pods of a namespace.
type Pods struct {
	Namespace string
	Selector  metav1.LabelSelector
}

// Namespace has the relevant fields of a namespace.
type Namespace struct {
	Labels      map[string]string
	Terminating bool
}

// Input is everything that affects the policies of a Service, except the Service itself.
type Input struct {
	// Namespaces are the relevant namespaces by name: that of the Service, those that match any of the Request's
	// Selectors, that of the ingress controller, and those of gateways and of existing policies. Additional namespaces do
	// not matter. A missing namespace does not exist.
	Namespaces map[string]Namespace
	// Ingresses are those in the Service's namespace that may have the Service as a backend.
	Ingresses []*networkingv1.Ingress
	// VirtualServices are those in the Service's namespace that may have the Service as a destination.
	VirtualServices []*VirtualService
	// Gateways are the existing Gateways that the VirtualServices reference.
	Gateways map[types.NamespacedName]Gateway
	// IstioUnknown is set while the VirtualServices, Gateways and Pods of gateways are not known. Existing policies for
	// gateways are unchanged then.
	IstioUnknown bool
	// HasPods reports whether a Pod in a namespace has a label of the given key with the value LabelValue. Policies that
	// only matter to such Pods are omitted until such a Pod exists. If nil, they are always included.
	HasPods func(namespace, key string) bool
	// Existing are the policies with the labels of the Service.
	Existing []Existing
	// Taken are policy names that belong to other Services. The Service gets other names instead. It may be nil.
	Taken map[types.NamespacedName]bool
}

// Existing has the relevant fields of a policy in the cluster.
type Existing struct {
	Namespace, Name string
	// LabelKey is the key of the label (see LabelPrefix) of the Pods that may connect to the Service; empty if the policy
	// does not use such a label.
	LabelKey string
	// Peer is the namespace of these Pods.
	Peer string
	// ForGateways is set if the policy is neither for Pods with such a label, nor for the ingress controller, nor for
	// everyone.
	ForGateways bool
}

// Result is the desired state.
type Result struct {
	// Policies are all wanted policies, sorted by namespace and name. They are complete except for fields that the API
	// server sets.
	Policies []*networkingv1.NetworkPolicy
	// Problems are in an order that depends only on the input.
	Problems []Problem
	// NamedPorts are the ports that policies reference by name. Pods must define them.
	NamedPorts []NamedPort

	kept map[types.NamespacedName]bool
}

// Keeps reports whether an existing policy that is not in Policies must stay, because its source cannot be read.
func (r *Result) Keeps(namespace, name string) bool {
	return r.kept[types.NamespacedName{Namespace: namespace, Name: name}]
}

// Desired returns the policies that a Service gets. The result depends only on the arguments, not on the order of lists
// in them.
func Desired(request *Request, input Input, config Config) *Result {
	result := &Result{}
	own, exists := input.Namespaces[request.service.Namespace]
	if !exists || own.Terminating || !config.handles(own.Labels) {
		return result
	}
	result.Problems = slices.Clone(request.problems)
	if !request.qualifies {
		return result
	}
	b := &builder{
		Request: request, input: input, policies: map[types.NamespacedName]*networkingv1.NetworkPolicy{},
		longKeys: map[string]string{}, problems: result.Problems,
	}
	b.peers = b.peersOf()
	b.fromPods()
	b.fromWorld()
	if config.IngressController != nil {
		b.fromIngressController(*config.IngressController)
	}
	if !input.IstioUnknown {
		b.fromGateways()
	}
	b.reportLongKeys()
	result.kept = b.kept()
	for key, policy := range b.policies {
		if !result.kept[key] {
			result.Policies = append(result.Policies, policy)
		}
	}
	slices.SortFunc(result.Policies, func(a, b *networkingv1.NetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	result.Problems, result.NamedPorts = b.problems, request.namedPorts()
	return result
}

func (c Config) handles(namespace map[string]string) bool {
	return len(c.NamespaceSelectors) == 0 || matchesAny(c.NamespaceSelectors, namespace)
}

func matchesAny(selectors []labels.Selector, values map[string]string) bool {
	return slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(values)) })
}

// peersOf returns the other namespaces whose Pods may connect to the Service. If the selectors are not known, it
// returns the namespaces that already have policies.
func (b *builder) peersOf() []string {
	var peers []string
	if b.unreadable.selectors {
		for _, one := range b.input.Existing {
			if one.LabelKey != "" && one.Peer != b.service.Namespace && b.lives(one.Peer) {
				peers = append(peers, one.Peer)
			}
		}
		slices.Sort(peers)
		return slices.Compact(peers)
	}
	for _, name := range slices.Sorted(maps.Keys(b.input.Namespaces)) {
		if name != b.service.Namespace && b.lives(name) && matchesAny(b.Selectors, b.input.Namespaces[name].Labels) {
			peers = append(peers, name)
		}
	}
	return peers
}

// lives reports whether new policies can be created in a namespace.
func (b *builder) lives(namespace string) bool {
	found, exists := b.input.Namespaces[namespace]
	return exists && !found.Terminating
}

// fromPods allows traffic from Pods with labels for the Service.
func (b *builder) fromPods() {
	for _, port := range b.servicePorts {
		id := port.target.id(b.service.Name)
		b.fromPodsTo(port.target, id, id)
	}
	for _, alias := range b.aliases {
		for _, port := range alias.ports {
			b.fromPodsTo(port, port.id(b.service.Name)+"-via-"+alias.name, alias.name)
		}
	}
}

func (b *builder) fromPodsTo(port Port, id, label string) {
	key := b.key(label)
	if b.hasPods(b.service.Namespace, key) {
		b.allow(port, id, podsWith(b.service.Namespace, key), "", "")
	}
	if b.unreadable.namespace {
		return
	}
	for _, peer := range b.peers {
		if key := b.key(b.namespace + "-" + label); b.hasPods(peer, key) {
			b.allow(port, id, podsWith(peer, key), "-from-"+peer, "")
		}
	}
}

func podsWith(namespace, key string) Pods {
	return Pods{Namespace: namespace, Selector: metav1.LabelSelector{MatchLabels: map[string]string{key: LabelValue}}}
}

func (b *builder) hasPods(namespace, key string) bool {
	return b.input.HasPods == nil || b.input.HasPods(namespace, key)
}

// fromIngressController allows traffic from the ingress controller to ports that Ingresses expose.
func (b *builder) fromIngressController(controller Pods) {
	if !b.lives(controller.Namespace) {
		return
	}
	ingresses := slices.SortedFunc(slices.Values(b.input.Ingresses),
		func(a, b *networkingv1.Ingress) int { return cmp.Compare(a.Name, b.Name) })
	for _, ingress := range ingresses {
		for _, backend := range Backends(ingress) {
			if ingress.Namespace == b.service.Namespace && backend.Name == b.service.Name {
				b.fromIngressControllerTo(controller, ingress.Name, backend.Port)
			}
		}
	}
}

func (b *builder) fromIngressControllerTo(controller Pods, ingress string, wanted networkingv1.ServiceBackendPort) {
	found := false
	for _, port := range b.servicePorts {
		if wanted.Name != "" && port.name == wanted.Name || wanted.Name == "" && port.number == wanted.Number {
			found = true
			b.allow(port.target, port.target.id(b.service.Name), controller, suffixIngressController, suffixIngressController)
		}
	}
	if !found {
		b.complainOnce(ReasonIngressPort, "Ingress %s references port %s, which the Service does not have.", ingress,
			cmp.Or(wanted.Name, strconv.Itoa(int(wanted.Number))))
	}
}

// Backends returns the Services that an Ingress exposes.
func Backends(ingress *networkingv1.Ingress) []networkingv1.IngressServiceBackend {
	var backends []networkingv1.IngressServiceBackend
	add := func(backend *networkingv1.IngressBackend) {
		if backend != nil && backend.Service != nil {
			backends = append(backends, *backend.Service)
		}
	}
	add(ingress.Spec.DefaultBackend)
	for _, rule := range ingress.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for i := range rule.HTTP.Paths {
			add(&rule.HTTP.Paths[i].Backend)
		}
	}
	return backends
}

// kept returns the existing policies that stay unchanged because their source is currently not known.
func (b *builder) kept() map[types.NamespacedName]bool {
	kept := map[types.NamespacedName]bool{}
	for _, one := range b.input.Existing {
		key := types.NamespacedName{Namespace: one.Namespace, Name: one.Name}
		_, desired := b.policies[key]
		switch {
		case b.input.IstioUnknown && one.ForGateways:
			kept[key] = true
		case !desired && b.isUnreadable(one):
			kept[key] = true
		}
	}
	return kept
}

// isUnreadable reports whether a policy was created for an annotation that is invalid now.
func (b *builder) isUnreadable(one Existing) bool {
	if b.unreadable.world && one.Namespace == b.service.Namespace && one.Name == worldName(b.service.Name) {
		return true
	}
	foreign := one.Peer != b.service.Namespace
	if one.LabelKey == "" || foreign && !slices.Contains(b.peers, one.Peer) {
		return false
	}
	if b.unreadable.namespace && foreign {
		return true
	}
	return slices.ContainsFunc(b.unreadable.aliases, func(alias string) bool {
		own, _ := toKey(alias)
		other, _ := toKey(b.namespace + "-" + alias)
		return strings.Contains(one.Name, "-via-") && (!foreign && one.LabelKey == own || foreign && one.LabelKey == other)
	})
}
