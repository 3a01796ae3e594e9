package netpol

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

const selectB = `[{"matchLabels":{"kubernetes.io/metadata.name":"b"}}]`

// shop returns a Service in namespace a of a cluster with the namespaces a, b and c.
func shop(annotations map[string]string) (*world, *corev1.Service) {
	w := newWorld()
	for _, name := range []string{"a", "b", "c"} {
		w.namespaces[name] = Namespace{Labels: map[string]string{corev1.LabelMetadataName: name}}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "shop", Annotations: map[string]string{}}}
	for key, value := range annotations {
		service.Annotations[domain+key] = value
	}
	service.Spec.Selector = map[string]string{"app": "shop"}
	service.Spec.Ports = []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}}
	return w, service
}

func namesIn(result *Result) string {
	var names []string
	for _, policy := range result.Policies {
		names = append(names, policy.Namespace+"/"+policy.Name)
	}
	return strings.Join(names, " ")
}

func reasonsOf(result *Result) string {
	var reasons []string
	for _, problem := range result.Problems {
		reasons = append(reasons, problem.Reason)
	}
	return strings.Join(reasons, " ")
}

// TestWrongAnnotationKeepsWhatItMade checks that an annotation that becomes invalid neither removes nor adds policies, and that
// the other annotations still apply.
func TestWrongAnnotationKeepsWhatItMade(t *testing.T) {
	right := map[string]string{
		"namespace-selectors":                selectB,
		"pod-label-selector-namespace-alias": "as",
		"from-all-allowed-ports":             `[{"port":1},{"port":2}]`,
		"from-some-allowed-ports":            `[{"port":3}]`,
		"from-world-to-ports":                `[{"port":4}]`,
	}
	for key, wrong := range map[string]string{
		"namespace-selectors": `[{"matchLabels":{"a":"-"}}]`, "pod-label-selector-namespace-alias": "a b",
		"from-all-allowed-ports": `{"port":1}`, "from-world-to-ports": ``,
	} {
		w, service := shop(right)
		before := w.desired(service)
		w.existing = before.Policies
		service.Annotations[domain+key] = wrong
		after := w.desired(service)
		for _, policy := range before.Policies {
			stays := slices.ContainsFunc(after.Policies, func(other *networkingv1.NetworkPolicy) bool {
				return Digest(other) == Digest(policy) && other.Namespace == policy.Namespace && other.Name == policy.Name
			})
			if !stays && !after.Keeps(policy.Namespace, policy.Name) {
				t.Errorf("%s: %s/%s is deleted", key, policy.Namespace, policy.Name)
			}
		}
		if reasonsOf(after) != ReasonInvalidAnnotation || !strings.Contains(after.Problems[0].Message, key) {
			t.Errorf("%s: the problems are %v", key, after.Problems)
		}
		delete(service.Annotations, domain+"from-some-allowed-ports")
		for _, policy := range before.Policies {
			if result := w.desired(service); strings.Contains(policy.Name, "-via-some") && result.Keeps(policy.Namespace, policy.Name) && key != "pod-label-selector-namespace-alias" {
				t.Errorf("%s: %s/%s is kept", key, policy.Namespace, policy.Name)
			}
		}
		w.existing = nil
		if result := w.desired(service); strings.Contains(namesIn(result), "from-world") == (key == "from-world-to-ports") ||
			strings.Contains(namesIn(result), "via-all") == (key == "from-all-allowed-ports") ||
			strings.Contains(namesIn(result), "b/") != (key == "from-all-allowed-ports" || key == "from-world-to-ports") {
			t.Errorf("%s: created without existing policies: %s", key, namesIn(result))
		}
	}
}

// TestUnknownPeersEndWithTheirNamespace checks that a deleted namespace loses its policies even while selectors are invalid.
func TestUnknownPeersEndWithTheirNamespace(t *testing.T) {
	w, service := shop(map[string]string{"namespace-selectors": `[{}]`})
	w.existing = w.desired(service).Policies
	service.Annotations[AnnotationNamespaceSelectors] = "?"
	w.namespaces["b"] = Namespace{Terminating: true}
	result := w.desired(service)
	if got := namesIn(result); strings.Contains(got, "b/") || !strings.Contains(got, "c/") || result.Keeps("b", "egress-to-a-shop-tcp-8080") {
		t.Errorf("got %s", got)
	}
}

func TestNothingWiderThanAsked(t *testing.T) {
	for _, text := range []string{
		`null`, ``, `[null]`, `[{}]`, `[{"port":null}]`, `[{"protocol":"TCP"}]`, `[{"port":0}]`, `[{"port":65536}]`, `[{"port":-1}]`, `[{"port":80,"protocol":"tcp"}]`,
		`[{"port":80,"protocol":"HTTP"}]`, `[{"port":"a_b"}]`, `[{"port":"way-too-long-name"}]`, `[{"port":80,"endPort":79}]`, `[{"port":80,"endPort":65536}]`,
		`[{"port":"web","endPort":80}]`, `[{"ports":80}]`, `[{"port":80}] []`, `[{"port":80.5}]`, `[{"port":99999999999}]`, `{"port":80}`, `[80]`,
	} {
		for _, key := range []string{"from-world-to-ports", "from-x-allowed-ports"} {
			w, service := shop(map[string]string{key: text})
			if result := w.desired(service); len(result.Policies) != 2 || reasonsOf(result) != ReasonInvalidAnnotation {
				t.Errorf("%s: %s results in %s, %v", key, text, namesIn(result), result.Problems)
			}
		}
	}
	for _, text := range []string{
		`null`, ``, `[null]`, `{}`, `[{"matchLabel":{}}]`, `[{"matchLabels":{"a":1}}]`, `[{"matchExpressions":[{"key":"a","operator":"Is"}]}]`,
		`[{"matchExpressions":[{"key":"a","operator":"In"}]}]`, `[{"matchLabels":{"a":"b c"}}]`, `[{"matchLabels":{"a/b/c":"b"}}]`, `[{}] x`,
	} {
		w, service := shop(map[string]string{"namespace-selectors": text})
		if result := w.desired(service); len(result.Policies) != 2 || reasonsOf(result) != ReasonInvalidAnnotation {
			t.Errorf("%s results in %s, %v", text, namesIn(result), result.Problems)
		}
	}
}

func TestKeysOfAnnotations(t *testing.T) {
	for key, want := range map[string]string{
		"networking.resources.gardener.cloud/from-x-allowed-ports":                         "x",
		"networking.resources.gardener.cloud/from-x-allowed-ports-y-allowed-ports":         "x-allowed-ports-y",
		"networking.resources.gardener.cloud/from-world-allowed-ports":                     "world",
		"my.networking.resources.gardener.cloud/from-x-allowed-ports":                      "",
		"networkingXresources.gardener.cloud/from-x-allowed-ports":                         "",
		"networking.resources.gardener.cloud/from-x-allowed-ports-2":                       "",
		"networking.resources.gardener.cloud/from--allowed-ports":                          "",
		"networking.resources.gardener.cloud/from-allowed-ports":                           "",
		"networking.resources.gardener.cloud/from-a_b-allowed-ports":                       "",
		"networking.resources.gardener.cloud/from-" + strings.Repeat("x", 90) + "-allowed": "",
	} {
		w, service := shop(nil)
		service.Annotations[key] = `[{"port":"9090"}]`
		got := namesIn(w.desired(service))
		if want == "" && strings.Contains(got, "via") || want != "" && !strings.Contains(got, "a/ingress-to-shop-tcp-9090-via-"+want) {
			t.Errorf("%s: got %s", key, got)
		}
	}
}

// TestAlternativeNames checks that a name that another Service uses is not used again.
func TestAlternativeNames(t *testing.T) {
	w, service := shop(map[string]string{"namespace-selectors": selectB})
	input := w.input(service)
	input.Taken = map[types.NamespacedName]bool{{Namespace: "b", Name: "egress-to-a-shop-tcp-8080"}: true}
	result := Desired(Read(service), input, w.config)
	if got := namesIn(result); !strings.Contains(got, "b/egress-to-a-shop-tcp-8080-") || len(result.Policies) != 4 {
		t.Errorf("got %s", got)
	}
}

// TestIstioKindNotServed checks that policies for gateways are kept while Istio's objects are unknown, even if they also apply
// to other Pods.
func TestIstioKindNotServed(t *testing.T) {
	w := readWorld(t, "testdata/istio-same-names.yaml")
	service := w.services[0]
	w.existing = w.desired(service).Policies
	w.istioUnknown = true
	result := w.desired(service)
	for _, policy := range w.existing {
		desired := strings.Contains(" "+namesIn(result)+" ", " "+policy.Namespace+"/"+policy.Name+" ")
		if desired == result.Keeps(policy.Namespace, policy.Name) {
			t.Errorf("%s/%s is desired (%t) or kept, but not both", policy.Namespace, policy.Name, desired)
		}
	}
	if got := namesIn(result); got != "a/egress-to-shop-tcp-8080 a/ingress-to-shop-tcp-8080 b/egress-to-a-shop-tcp-8080" {
		t.Errorf("got %s", got)
	}
	w.istioUnknown, w.virtualServices = false, nil
	if result := w.desired(service); result.Keeps("b", "egress-to-a-shop-tcp-8080-from-istio") {
		t.Error("a policy that is no longer requested is kept")
	}
}

func TestShorten(t *testing.T) {
	key, shortened := toKey("this-is-a-very-long-svc-name-which-will-exceed-max-length-for-sure")
	if part := strings.TrimPrefix(key, domain); !shortened || len(part) != 63 || !strings.HasPrefix(part, "to-this-is-a-very-long-svc-name-which-will-exceed-max-len-") {
		t.Errorf("got %s", key)
	}
	exactly := strings.Repeat("x", 60)
	if key, shortened := toKey(exactly); shortened || key != LabelPrefix+exactly {
		t.Errorf("got %s", key)
	}
	if name := shorten(strings.Repeat("x", 254), maxPolicyName); len(name) != 253 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		t.Errorf("got %s", name)
	}
}

func TestNamesThatAreTooLong(t *testing.T) {
	w, service := shop(nil)
	service.Name = strings.Repeat("x", 300)
	if result := w.desired(service); len(result.Policies) > 0 || reasonsOf(result) != ReasonInvalidService {
		t.Errorf("got %s, %v", namesIn(result), result.Problems)
	}
	service.Name = strings.Repeat("x", 63)
	service.Namespace = strings.Repeat("n", 63)
	peer := strings.Repeat("p", 63)
	w.namespaces[service.Namespace], w.namespaces[peer] = Namespace{}, Namespace{Labels: map[string]string{"peer": "1"}}
	service.Annotations = map[string]string{
		AnnotationNamespaceSelectors:                                  `[{"matchLabels":{"peer":"1"}}]`,
		domain + "from-" + strings.Repeat("y", 44) + "-allowed-ports": `[{"port":"fifteen-letters","protocol":"SCTP"}]`,
	}
	result := w.desired(service)
	for _, policy := range result.Policies {
		if texts := validation.IsDNS1123Subdomain(policy.Name); len(texts) > 0 {
			t.Errorf("%s: %v", policy.Name, texts)
		}
	}
	if len(result.Policies) != 8 || reasonsOf(result) != ReasonKeysTooLong {
		t.Errorf("got %s, %v", namesIn(result), result.Problems)
	}
}

func TestEmptySelectorSelectsNothing(t *testing.T) {
	w, service := shop(map[string]string{"from-world-to-ports": "[]"})
	service.Spec.Selector = map[string]string{}
	if result := w.desired(service); len(result.Policies) > 0 {
		t.Errorf("got %s", namesIn(result))
	}
}

// TestExistingOf checks that the purpose of a policy can be derived from the policy itself, also for policies of older
// versions.
func TestExistingOf(t *testing.T) {
	w, service := shop(map[string]string{"namespace-selectors": selectB, "from-world-to-ports": "[]"})
	for _, policy := range w.desired(service).Policies {
		got := ExistingOf(policy)
		want := Existing{Namespace: policy.Namespace, Name: policy.Name, Peer: policy.Namespace}
		if !strings.HasSuffix(policy.Name, "from-world") {
			want.LabelKey = LabelPrefix + "shop-tcp-8080"
		}
		if strings.HasSuffix(policy.Name, "from-b") || policy.Namespace == "b" {
			want.LabelKey, want.Peer = LabelPrefix+"a-shop-tcp-8080", "b"
		}
		if got != want {
			t.Errorf("%s: got %+v", policy.Name, got)
		}
	}
	world := &networkingv1.NetworkPolicy{}
	world.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{}, PodSelector: &metav1.LabelSelector{}}, {IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}},
	}}}
	if got := ExistingOf(world); got.ForGateways || got.LabelKey != "" {
		t.Errorf("got %+v", got)
	}
}

// TestReadVirtualService checks that shapes that the definition does not allow are ignored.
func TestReadVirtualService(t *testing.T) {
	for _, spec := range []any{
		nil, "text", map[string]any{"gateways": "x", "http": "y"}, map[string]any{"gateways": []any{1, ""}, "http": []any{1, map[string]any{"route": 1}}},
		map[string]any{"tcp": []any{map[string]any{"route": []any{1, map[string]any{"destination": 1}, map[string]any{"destination": map[string]any{
			"host": ".a.svc.cluster.local", "port": map[string]any{"number": int64(80)},
		}}, map[string]any{"destination": map[string]any{"host": "x.a.svc.cluster.local", "port": map[string]any{"number": int64(70000)}}}}}}},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "a"}, "spec": spec}}
		if got := ReadVirtualService(object); len(got.Gateways)+len(got.Destinations) > 0 {
			t.Errorf("%v: got %+v", spec, got)
		}
		if got := ReadSelector(object); len(got) > 0 {
			t.Errorf("%v: got %v", spec, got)
		}
	}
}

// FuzzAnnotations checks that no annotations cause a panic, and that every policy is valid.
func FuzzAnnotations(f *testing.F) {
	f.Add("namespace-selectors", selectB, "from-x-allowed-ports", `[{"port":80,"protocol":"TCP"}]`)
	f.Add("pod-label-selector-namespace-alias", "b", "from-world-to-ports", `[]`)
	f.Add("from--allowed-ports", `[{}]`, "from-world-to-ports", `[{"port":"10250","endPort":3}]`)
	f.Fuzz(func(t *testing.T, firstKey, first, secondKey, second string) {
		w, service := shop(map[string]string{firstKey: first, secondKey: second})
		w.existing = w.desired(service).Policies
		result := w.desired(service)
		if len(result.Policies) < 2 {
			t.Error("the ports of the Service have no policies")
		}
		for _, policy := range result.Policies {
			if len(validation.IsDNS1123Subdomain(policy.Name)) > 0 {
				t.Errorf("invalid name %q", policy.Name)
			}
			if key := labelKeyOf(&policy.Spec.PodSelector); key != "" && len(validation.IsQualifiedName(key)) > 0 {
				t.Errorf("invalid label %q", key)
			}
			isWorld := policy.Name == worldName("shop")
			for _, rule := range policy.Spec.Ingress {
				if len(rule.From) == 0 && !isWorld || len(rule.Ports) == 0 && (!isWorld || !strings.Contains(first+second, "[")) {
					t.Errorf("%s is too wide: %+v", policy.Name, rule)
				}
			}
			for _, rule := range policy.Spec.Egress {
				if len(rule.To) != 1 || len(rule.Ports) == 0 {
					t.Errorf("%s is too wide: %+v", policy.Name, rule)
				}
			}
		}
	})
}
