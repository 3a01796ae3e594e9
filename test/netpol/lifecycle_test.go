package netpol

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/netpol/controller"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestLifeOfAService checks that policies follow the Service and the namespaces that it selects as they are created, deleted and
// relabelled.
func TestLifeOfAService(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := f.namespaces(2)
	own, first := all[0], all[1]
	second := first + "-second" // created later
	all = append(all, second)
	f.run(controller.Options{Namespaces: all})

	service := f.service(own, "shop", map[string]string{"namespace-selectors": selecting("peer", own)})
	want := pairIn(own, "shop-tcp-8080")
	f.eventually("the Service has policies", all, want...)

	f.label(first, map[string]any{"peer": own})
	withFirst := []string{own + "/ingress-to-shop-tcp-8080-from-" + first, first + "/egress-to-" + own + "-shop-tcp-8080"}
	f.eventually("a namespace gets the label", all, slices.Concat(want, withFirst)...)

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second, Labels: map[string]string{"peer": own}}}
	kit.Must(t, f.client.Create(f.ctx, namespace))
	withSecond := []string{own + "/ingress-to-shop-tcp-8080-from-" + second, second + "/egress-to-" + own + "-shop-tcp-8080"}
	f.eventually("a namespace is created", all, slices.Concat(want, withFirst, withSecond)...)

	f.label(first, map[string]any{"peer": nil})
	f.eventually("a namespace loses the label", all, slices.Concat(want, withSecond)...)

	kit.Must(t, f.client.Delete(f.ctx, namespace))
	f.eventually("a namespace is being deleted", all, want...)

	f.patch(service, map[string]any{"spec": map[string]any{"ports": []any{
		map[string]any{"name": "web", "port": 80, "targetPort": "web"}, map[string]any{"name": "dns", "port": 53, "protocol": "UDP"},
	}}})
	f.label(first, map[string]any{"peer": own})
	f.eventually("other ports", all, slices.Concat(pairIn(own, "shop-tcp-web"), pairIn(own, "shop-udp-53"), []string{
		own + "/ingress-to-shop-tcp-web-from-" + first, first + "/egress-to-" + own + "-shop-tcp-web",
		own + "/ingress-to-shop-udp-53-from-" + first, first + "/egress-to-" + own + "-shop-udp-53",
	})...)

	f.annotate(service, "namespace-selectors", nil)
	f.annotate(service, "from-world-to-ports", "[]")
	f.eventually("other annotations", all, slices.Concat(pairIn(own, "shop-tcp-web"), pairIn(own, "shop-udp-53"), []string{own + "/ingress-to-shop-from-world"})...)

	f.patch(service, map[string]any{"spec": map[string]any{"selector": map[string]any{"app": "other"}}})
	kit.EventuallyTrue(t, "the selector changes", func() bool {
		return f.policy(own, "ingress-to-shop-from-world").Spec.PodSelector.MatchLabels["app"] == "other"
	})
	f.patch(service, map[string]any{"spec": map[string]any{"selector": nil}})
	f.eventually("no selector", all)
	f.patch(service, map[string]any{"spec": map[string]any{"selector": map[string]any{"app": "shop"}}})
	f.eventually("a selector again", all, slices.Concat(pairIn(own, "shop-tcp-web"), pairIn(own, "shop-udp-53"), []string{own + "/ingress-to-shop-from-world"})...)
	kit.Must(t, f.client.Delete(f.ctx, service))
	f.eventually("the Service is deleted", all)
}

// TestServiceOfATerminatingNamespace checks that the policies of its Services in other namespaces are deleted.
func TestServiceOfATerminatingNamespace(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := f.namespaces(2)
	f.run(controller.Options{Namespaces: all})
	f.service(all[0], "shop", map[string]string{"namespace-selectors": selecting(corev1.LabelMetadataName, all[1])})
	f.eventually("policies", all[1:], all[1]+"/egress-to-"+all[0]+"-shop-tcp-8080")
	kit.Must(t, f.client.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: all[0]}}))
	f.eventually("no policies", all)
}

// TestServicesDeletedWhileNotRunning checks that the next controller makes up at its start for changes while no controller ran, and
// does nothing else.
func TestServicesDeletedWhileNotRunning(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := f.namespaces(2)
	stop := f.run(controller.Options{Namespaces: all})
	gone := f.service(all[0], "gone", map[string]string{"namespace-selectors": selecting(corev1.LabelMetadataName, all[1])})
	f.service(all[0], "stays", nil)
	f.eventually("policies", all, slices.Concat(pairIn(all[0], "gone-tcp-8080"), pairIn(all[0], "stays-tcp-8080"), []string{
		all[0] + "/ingress-to-gone-tcp-8080-from-" + all[1], all[1] + "/egress-to-" + all[0] + "-gone-tcp-8080",
	})...)
	stop()
	kit.Must(t, f.client.Delete(f.ctx, gone))
	f.requests.Forget()
	f.run(controller.Options{Namespaces: all})
	f.eventually("the policies of the deleted Service are deleted", all, pairIn(all[0], "stays-tcp-8080")...)
	for _, request := range f.quiet(all[0], "other") {
		if !strings.HasPrefix(request, "DELETE ") && !strings.HasPrefix(request, "GET ") || strings.Contains(request, "stays") {
			t.Errorf("unexpected request %s", request)
		}
	}
}

// TestOneRequestForEachPolicy checks that each policy is written by one request. Changes of Services, namespaces, Pods and policies
// that do not matter cause no requests, nor does the start of the next controller.
func TestOneRequestForEachPolicy(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := f.namespaces(2)
	stop := f.run(controller.Options{Namespaces: all})
	f.quiet(all[0], "first")
	f.requests.Forget()
	service := f.service(all[0], "shop", map[string]string{"namespace-selectors": selecting(corev1.LabelMetadataName, all[1])})
	want := append(pairIn(all[0], "shop-tcp-8080"), all[0]+"/ingress-to-shop-tcp-8080-from-"+all[1], all[1]+"/egress-to-"+all[0]+"-shop-tcp-8080")
	f.eventually("policies", all, append(want, pairIn(all[0], "first-tcp-8080")...)...)
	f.label(all[1], map[string]any{"does-not": "matter"})
	f.patch(service, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"not": "ours"}}})
	f.patch(f.policy(all[0], "egress-to-shop-tcp-8080"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"their": "label"}}})
	sent := f.quiet(all[0], "second")
	if len(sent) != len(want) {
		t.Errorf("the requests are %q", sent)
	}
	if f.policy(all[0], "egress-to-shop-tcp-8080").Labels["their"] != "label" {
		t.Error("a label of another client was removed")
	}
	if f.requests.Watched("/pods") {
		t.Error("Pods are watched")
	}
	stop()
	f.requests.Forget()
	f.run(controller.Options{Namespaces: all})
	for _, request := range f.quiet(all[0], "third") {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("a new controller sends %s", request)
		}
	}
}

// TestHandMadeChangesArePutBack checks that every change of a policy by another client is reverted, and so is a deletion.
func TestHandMadeChangesArePutBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := f.namespaces(1)
	f.run(controller.Options{Namespaces: all})
	f.service(all[0], "shop", nil)
	f.eventually("policies", all, pairIn(all[0], "shop-tcp-8080")...)
	policy := f.policy(all[0], "ingress-to-shop-tcp-8080")
	for name, change := range map[string]map[string]any{
		"rules":        {"spec": map[string]any{"ingress": []any{map[string]any{}}}},
		"other rules":  {"spec": map[string]any{"egress": []any{map[string]any{}}, "policyTypes": []any{"Ingress", "Egress"}}},
		"Pods":         {"spec": map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": "all"}}}},
		"labels":       {"metadata": map[string]any{"labels": nil}},
		"its Service":  {"metadata": map[string]any{"labels": map[string]any{netpol.LabelServiceName: "nobody"}}},
		"its text":     {"metadata": map[string]any{"annotations": map[string]any{netpol.AnnotationDescription: "mine"}}},
		"has no text":  {"metadata": map[string]any{"annotations": nil}},
		"empty egress": {"spec": map[string]any{"egress": []any{}}},
	} {
		f.patch(policy, change)
		f.eventuallyAgain(name, policy)
	}
	kit.Must(t, f.client.Delete(f.ctx, policy))
	f.eventuallyAgain("deletion", policy)
	foreign := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: all[0], Name: "mine"}}
	kit.Must(t, f.client.Create(f.ctx, foreign))
	f.quiet(all[0], "other")
	if got := f.policy(all[0], "mine"); got.ResourceVersion != foreign.ResourceVersion {
		t.Error("the policy of another client was changed")
	}
}

// TestAdoption checks that policies of gardener-resource-manager are taken over. A correct one is not even written. A wrong one is
// corrected, whichever client owns its fields. An unwanted one is deleted. No policy exists twice.
func TestAdoption(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := f.namespaces(1)
	f.service(all[0], "shop", nil)
	key := domain + "to-shop-tcp-8080"
	right := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: all[0], Name: "ingress-to-shop-tcp-8080",
		Labels: map[string]string{domain + "service-name": "shop", domain + "service-namespace": all[0]},
		Annotations: map[string]string{"gardener.cloud/description": fmt.Sprintf("Allows ingress TCP traffic to port 8080 for pods selected by the %[1]s/shop "+
			"service selector from pods running in namespace %[1]s labeled with {map[%[2]s:allowed] []}.", all[0], key)},
	}}
	port, protocol := intstr.FromInt32(8080), corev1.ProtocolTCP
	right.Spec = networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: "allowed"}}}},
			Ports: []networkingv1.NetworkPolicyPort{{Port: &port, Protocol: &protocol}},
		}},
		PolicyTypes: []networkingv1.PolicyType{"Ingress"},
	}
	stale, wrong := right.DeepCopy(), right.DeepCopy()
	stale.Name, wrong.Name = "ingress-to-shop-tcp-9090", "egress-to-shop-tcp-8080"
	wrong.Spec.Ingress = append(wrong.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
	for _, policy := range []*networkingv1.NetworkPolicy{right, stale, wrong} {
		kit.Must(t, f.client.Create(f.ctx, policy, client.FieldOwner("gardener-resource-manager")))
	}
	f.run(controller.Options{Namespaces: all})
	f.eventually("the stale one is deleted", all, pairIn(all[0], "shop-tcp-8080")...)
	kit.EventuallyTrue(t, "the wrong one is corrected and keeps no former rules", func() bool {
		spec := f.policy(all[0], wrong.Name).Spec
		return len(spec.Ingress) == 0 && len(spec.Egress) == 1 && slices.Equal(spec.PolicyTypes, []networkingv1.PolicyType{"Egress"})
	})
	sent := f.quiet(all[0], "other")
	if slices.ContainsFunc(sent, func(request string) bool { return strings.HasSuffix(request, right.Name) }) ||
		f.policy(all[0], right.Name).ResourceVersion != right.ResourceVersion {
		t.Errorf("the correct policy was written: %q", sent)
	}
	f.patch(f.policy(all[0], right.Name), map[string]any{"spec": map[string]any{"egress": []any{map[string]any{}}}})
	f.eventuallyAgain("a change after the takeover", right)
}

// TestWrongAnnotations checks that a Warning Event names the problem. The other policies are correct, existing policies are kept, and
// nothing is opened.
func TestWrongAnnotations(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := f.namespaces(2)
	f.run(controller.Options{Namespaces: all})
	service := f.service(all[0], "shop", map[string]string{
		"namespace-selectors": selecting(corev1.LabelMetadataName, all[1]), "from-world-to-ports": `[{"port":9090}]`,
	})
	before := append(pairIn(all[0], "shop-tcp-8080"), all[0]+"/ingress-to-shop-tcp-8080-from-"+all[1], all[1]+"/egress-to-"+all[0]+"-shop-tcp-8080",
		all[0]+"/ingress-to-shop-from-world")
	f.eventually("policies", all, before...)
	f.annotate(service, "from-world-to-ports", `[{"port":9090}`)
	f.annotate(service, "namespace-selectors", `[{"matchLabels":{"a":"b c"}}]`)
	f.annotate(service, "from-all-allowed-ports", `[{"port":80}]`)
	f.annotate(service, "from-none-allowed-ports", `[{"port":70000}]`)
	f.annotate(service, "from-half-allowed-ports", `[{"port":"metrics","protocol":"tcp"}]`)
	f.eventually("the valid annotations take effect", all, slices.Concat(before, pairIn(all[0], "shop-tcp-80-via-all"),
		[]string{all[0] + "/ingress-to-shop-tcp-80-via-all-from-" + all[1], all[1] + "/egress-to-" + all[0] + "-shop-tcp-80-via-all"})...)
	if ports := f.policy(all[0], "ingress-to-shop-from-world").Spec.Ingress[0].Ports; len(ports) != 1 || ports[0].Port.IntVal != 9090 {
		t.Errorf("the open ports are %v", ports)
	}
	for words, reason := range map[string]string{
		"from-world-to-ports: not valid JSON": "InvalidAnnotation", "namespace-selectors: selector 0": "InvalidAnnotation",
		"from-none-allowed-ports: port 0 of the list: port 70000": "InvalidAnnotation", `protocol "tcp" is not one of`: "InvalidAnnotation",
	} {
		f.warned(service, reason, words)
	}
	f.annotate(service, "namespace-selectors", `[]`)
	f.annotate(service, "from-world-to-ports", nil)
	f.eventually("all policies are correct again", all, slices.Concat(pairIn(all[0], "shop-tcp-8080"), pairIn(all[0], "shop-tcp-80-via-all"))...)
	long := f.service(all[0], strings.Repeat("x", 63), map[string]string{"namespace-selectors": `[{}]`})
	f.warned(long, "PodLabelSelectorKeysTooLong", "to-"+strings.Repeat("x", 54)+"-")
	f.warned(long, "NamespaceSelectorMatchesAll", "every namespace")
}

// TestPoliciesOfOneName checks that two Services whose policies would have the same name get both policies, and do not overwrite each
// other's.
func TestPoliciesOfOneName(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := f.namespaces(2)
	longer := all[0] + "-b"
	kit.Must(t, f.client.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: longer}}))
	f.run(controller.Options{Namespaces: append(all, longer)})
	annotations := map[string]string{"namespace-selectors": selecting(corev1.LabelMetadataName, all[1])}
	name := "egress-to-" + longer + "-c-tcp-8080"
	f.service(all[0], "b-c", annotations)
	f.service(longer, "c", annotations)
	services := func() []string {
		var list networkingv1.NetworkPolicyList
		kit.Must(t, f.client.List(f.ctx, &list, client.InNamespace(all[1])))
		var found []string
		for _, policy := range list.Items {
			if !strings.HasPrefix(policy.Name, name) {
				t.Errorf("unexpected policy %s", policy.Name)
			}
			found = append(found, netpol.ServiceOf(&policy).String())
		}
		slices.Sort(found)
		return found
	}
	want := []string{longer + "/c", all[0] + "/b-c"}
	slices.Sort(want)
	kit.Eventually(t, "both have a policy", func() string {
		if found := services(); !slices.Equal(found, want) {
			return fmt.Sprintf("the policies belong to %v, want %v", found, want)
		}
		return ""
	})
	versions := func() (versions []string) {
		for _, one := range f.policies(all[1]) {
			versions = append(versions, f.policy(all[1], strings.TrimPrefix(one, all[1]+"/")).ResourceVersion)
		}
		return versions
	}
	f.quiet(all[0], "first")
	before := versions()
	f.quiet(all[0], "second")
	if after := versions(); !slices.Equal(before, after) || !slices.Equal(services(), want) {
		t.Error("the Services overwrite each other's policy")
	}
}

// TestFailuresOfRequests checks that a policy that cannot be written does not block the others, and is retried.
func TestFailuresOfRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	all := f.namespaces(1)
	var broken atomic.Bool
	var failures atomic.Int32
	broken.Store(true)
	f.before = func(request *http.Request) error {
		if broken.Load() && request.Method != http.MethodGet && strings.Contains(request.URL.Path, "/egress-to-shop") {
			failures.Add(1)
			return errors.New("broken by the test")
		}
		return nil
	}
	f.run(controller.Options{Namespaces: all})
	service := f.service(all[0], "shop", nil)
	f.eventually("the other policy", all, all[0]+"/ingress-to-shop-tcp-8080")
	kit.EventuallyTrue(t, "several tries", func() bool { return failures.Load() > 2 })
	broken.Store(false)
	f.eventually("both policies", all, pairIn(all[0], "shop-tcp-8080")...)
	broken.Store(true)
	kit.Must(t, f.client.Delete(f.ctx, service))
	f.eventually("the other policy is deleted", all, all[0]+"/egress-to-shop-tcp-8080")
	broken.Store(false)
	f.eventually("both are deleted", all)
}
