package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/netpol"
)

var (
	noon   = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	shop   = types.NamespacedName{Namespace: "a", Name: "shop"}
	policy = types.NamespacedName{Namespace: "a", Name: "ingress-to-shop-tcp-80"}
)

// TestBuckets checks that a namespace and a selector that matches it always share a bucket.
func TestBuckets(t *testing.T) {
	namespaces := []map[string]string{nil, {"a": "1"}, {"a": "2", "b": ""}, {"b": "x", "c": "y"}, {"c": "z", "a": "3"}}
	for text, want := range map[string]string{
		"a=1": "a=1", "a in (1,2)": "a=1 a=2", "a": "a", "!a": "*", "a!=1": "*", "a,b=x": "a", "a in (1,2),b=x": "b=x", "!a,b": "b", "a notin (1,2),c==y": "c=y", "": "*",
	} {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		buckets := slices.Sorted(slices.Values(bucketsOf(selector)))
		if got := strings.Join(buckets, " "); got != want {
			t.Errorf("%s: got %s", text, got)
		}
		for _, values := range namespaces {
			of := bucketsFor(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: values}})
			found := slices.ContainsFunc(buckets, func(bucket string) bool { return slices.Contains(of, bucket) })
			if selector.Matches(labels.Set(values)) && !found {
				t.Errorf("%s matches %v, which is not found", text, values)
			}
		}
	}
	if got := bucketsOf(labels.Nothing()); len(got) > 0 {
		t.Errorf("a selector that matches nothing has the buckets %v", got)
	}
}

// reduced returns a policy as the cache stores it.
func reduced(t *testing.T, version, description string) *networkingv1.NetworkPolicy {
	t.Helper()
	full := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: policy.Namespace, Name: policy.Name, UID: "uid", ResourceVersion: version,
		Labels:      map[string]string{netpol.LabelServiceName: shop.Name, netpol.LabelServiceNamespace: shop.Namespace},
		Annotations: map[string]string{netpol.AnnotationDescription: description},
	}}
	result := reducePolicy(full)
	if second := reducePolicy(result); second != result {
		t.Fatalf("a reduced object is changed when it is reduced again: %v", second)
	}
	if result.Annotations[keptDigest] != netpol.Digest(full) || serviceOf(result) != shop {
		t.Fatalf("got %+v", result)
	}
	return result
}

func TestWrites(t *testing.T) {
	w := newWrites(true)
	of := func(cached *networkingv1.NetworkPolicy, now time.Time) string {
		all := map[types.NamespacedName]*networkingv1.NetworkPolicy{}
		if cached != nil {
			all[policy] = cached
		}
		overlay(all, w.of(shop, now))
		if all[policy] == nil {
			return ""
		}
		return all[policy].ResourceVersion
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	nothing := func() *networkingv1.NetworkPolicy { return nil }
	w.record(reduced(t, "10", "x"), noon, nothing)
	expect("not in the cache yet", of(nil, noon), "10")
	expect("an older one in the cache", of(reduced(t, "9", "y"), noon), "10")
	expect("a newer one in the cache", of(reduced(t, "11", "y"), noon), "11")
	if w.seen(reduced(t, "9", "y")) {
		t.Error("an earlier event counts as the event of our write")
	}
	expect("after an earlier event", of(nil, noon), "10")
	if !w.seen(reduced(t, "10", "x")) || w.seen(reduced(t, "10", "x")) {
		t.Error("the event of our write is not recognized, or it is recognized twice")
	}
	expect("after the event", of(nil, noon), "")
	w.record(reduced(t, "12", "x"), noon, nothing)
	if w.seen(reduced(t, "13", "y")) {
		t.Error("a later event counts as the event of our write")
	}
	w.record(reduced(t, "14", "x"), noon, nothing)
	w.record(reduced(t, "13", "y"), noon, nothing)
	expect("an earlier write whose response arrived later", of(nil, noon), "14")
	if !w.pending(shop) {
		t.Error("an unseen write is not pending")
	}
	expect("never seen", of(nil, noon.Add(writesMemory+1)), "")
	if len(w.byPolicy)+len(w.byService) > 0 {
		t.Errorf("unused entries remain: %v %v", w.byPolicy, w.byService)
	}
	for _, shown := range []string{"15", "16"} {
		w.record(reduced(t, "15", "x"), noon, func() *networkingv1.NetworkPolicy { return reduced(t, shown, "y") })
		expect("a write that the watch showed before its response arrived, at "+shown, of(nil, noon), "")
	}
	w.record(reduced(t, "13", "x"), noon, nothing)
	expect("a write after which the watch showed that the policy was deleted", of(nil, noon), "")
	w.record(reduced(t, "15", "x"), noon, func() *networkingv1.NetworkPolicy { return reduced(t, "14", "y") })
	expect("a write after the watch showed an earlier state", of(nil, noon), "15")
}

func TestDifferences(t *testing.T) {
	desired := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: policy.Namespace, Name: policy.Name,
		Labels:      map[string]string{netpol.LabelServiceName: shop.Name, netpol.LabelServiceNamespace: shop.Namespace},
		Annotations: map[string]string{netpol.AnnotationDescription: "x"},
	}}
	going := reduced(t, "1", "x")
	going.DeletionTimestamp = &metav1.Time{Time: noon}
	for name, test := range map[string]struct {
		desired, present *networkingv1.NetworkPolicy
		want             int
	}{
		"nothing": {nil, nil, 0}, "missing": {desired, nil, 1}, "as it should be": {desired, reduced(t, "1", "x"), 0}, "different": {desired, reduced(t, "1", "y"), 1},
		"too much": {nil, reduced(t, "1", "x"), 1}, "going already": {nil, going, 0},
	} {
		result, existing := &netpol.Result{}, map[types.NamespacedName]*networkingv1.NetworkPolicy{}
		if test.desired != nil {
			result.Policies = append(result.Policies, test.desired)
		}
		if test.present != nil {
			existing[policy] = test.present
		}
		changes := differences(result, existing)
		if len(changes) != test.want || len(changes) > 0 && (changes[0].desired != test.desired || changes[0].present != test.present) {
			t.Errorf("%s: got %+v", name, changes)
		}
	}
}

func TestAgain(t *testing.T) {
	one := []change{{}}
	for want, todo := range map[time.Duration]todo{0: {}, recheckDelay: {changes: one}, time.Second: {changes: one, wait: time.Second}, time.Hour: {wait: time.Hour}} {
		if got := todo.again(); got != want {
			t.Errorf("%+v: got %s", todo, got)
		}
	}
	if got := (todo{unseen: true}).again(); got != recheckDelay {
		t.Errorf("with an unseen write: got %s", got)
	}
}

func TestTold(t *testing.T) {
	reported := newReportedProblems()
	first, second := netpol.Problem{Reason: "A", Message: "1"}, netpol.Problem{Reason: "A", Message: "2"}
	if added, services := reported.update(shop, []netpol.Problem{first}); !slices.Equal(added, []netpol.Problem{first}) || services != 1 {
		t.Errorf("got %v, %d", added, services)
	}
	if added, _ := reported.update(shop, []netpol.Problem{first, second}); !slices.Equal(added, []netpol.Problem{second}) {
		t.Errorf("got %v", added)
	}
	if added, services := reported.update(shop, nil); len(added) > 0 || services != 0 {
		t.Errorf("got %v, %d", added, services)
	}
	if got := byReason([]netpol.Problem{first, {Reason: "B"}, second}); len(got) != 2 || got[0].Message != "1 2" {
		t.Errorf("got %v", got)
	}
}

// TestReduce checks that irrelevant fields of Services, Namespaces, Ingresses and Pods are removed.
func TestReduce(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "x", UID: "u", ResourceVersion: "1", Labels: map[string]string{"l": "1"},
		Annotations: map[string]string{"other": "x", netpol.AnnotationFromWorld: "[]"}, ManagedFields: []metav1.ManagedFieldsEntry{{}}}
	service := &corev1.Service{ObjectMeta: meta}
	service.Spec.ClusterIP, service.Spec.Selector = "10.0.0.1", map[string]string{"a": "b"}
	service.Spec.Ports = []corev1.ServicePort{{Name: "p", Port: 1, NodePort: 30000}}
	got := reduceService(service)
	if len(got.Annotations) != 1 || len(got.Labels)+len(got.ManagedFields)+len(got.Spec.ClusterIP) > 0 ||
		got.Spec.Ports[0].NodePort != 0 || got.Spec.Ports[0].Name != "p" || got.UID != "u" {
		t.Errorf("got %+v", got)
	}
	pod := podMetadata()
	pod.ObjectMeta = meta
	pod.Labels = map[string]string{"l": "1", netpol.LabelPrefix + "x": "allowed", netpol.LabelPrefix + "y": "denied"}
	if kept := reducePod(pod); len(kept.Labels) != 1 || len(kept.Annotations) > 0 {
		t.Errorf("got %+v", kept)
	}
	ingress := &networkingv1.Ingress{ObjectMeta: meta}
	ingress.Spec.Rules = []networkingv1.IngressRule{{Host: "h"}, {IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
		Paths: []networkingv1.HTTPIngressPath{{Path: "/", Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "s"}}}},
	}}}}
	if kept := reduceIngress(ingress); len(kept.Labels) > 0 || !slices.Equal(backendNames(kept), []string{"s"}) {
		t.Errorf("got %+v", kept)
	}
}
