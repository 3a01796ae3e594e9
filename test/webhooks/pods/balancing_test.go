package pods

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/test/kit"
)

// gateway creates the Service of an ingress gateway in the test's namespace, and the ConfigMap that names it, with the given keys and
// values.
func (f *fixture) gateway(data ...string) *corev1.Service {
	f.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "istio-ingressgateway-internal"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	}
	kit.Must(f, f.client.Create(f.Context(), service))
	f.configMap(data...)
	return service
}

// configMap writes the ConfigMap that enables load balancing.
func (f *fixture) configMap(data ...string) {
	f.Helper()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "istio-internal-load-balancing"}, Data: map[string]string{}}
	for i := 0; i < len(data); i += 2 {
		configMap.Data[data[i]] = data[i+1]
	}
	err := f.client.Create(f.Context(), configMap)
	if apierrors.IsAlreadyExists(err) {
		err = f.client.Update(f.Context(), configMap)
	}
	kit.Must(f, err)
}

// TestLoadBalancing checks that Pods with a generic kubeconfig resolve the hosts of the ConfigMap to the address of the Service that it
// names.
func TestLoadBalancing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.register(loadBalancing(f.client))
	const volumes = `volumes: [{name: a, secret: {secretName: generic-token-kubeconfig-1a2b}}]`
	if pod := f.would("spec: {" + volumes + "}"); len(pod.Spec.HostAliases)+len(pod.Labels) != 0 {
		t.Errorf("without the ConfigMap, the Pod is %+v", pod)
	}
	service := f.gateway("hosts", "api.one,api.two", "istio-namespace", f.namespace)
	ip := service.Spec.ClusterIPs[0]
	check := func(text string, want ...corev1.HostAlias) {
		t.Helper()
		pod := f.would(text)
		same := slices.EqualFunc(pod.Spec.HostAliases, want, func(a, b corev1.HostAlias) bool { return a.IP == b.IP && slices.Equal(a.Hostnames, b.Hostnames) })
		label := ""
		for key, value := range pod.Labels {
			if strings.HasPrefix(key, "networking.resources.gardener.cloud/to-"+f.namespace+"-istio-ingressgateway-inte") {
				label = value
			}
		}
		if !same || (label == "allowed") != (len(want) > 0) {
			t.Errorf("%s: the aliases are %+v, the labels %v", text, pod.Spec.HostAliases, pod.Labels)
		}
	}
	both := corev1.HostAlias{IP: ip, Hostnames: []string{"api.one", "api.two"}}
	check("spec: {"+volumes+"}", both)
	check(`spec: {volumes: [{name: a, projected: {sources: [{secret: {name: generic-token-kubeconfig}}]}}]}`, both)
	check(`spec: {volumes: [{name: a, secret: {secretName: other}}]}`)
	check(`spec: {`+volumes+`, hostAliases: [{ip: 192.0.2.1, hostnames: [x]}]}`, corev1.HostAlias{IP: "192.0.2.1", Hostnames: []string{"x"}}, both)
	check(`spec: {`+volumes+`, hostAliases: [{ip: `+ip+`, hostnames: [api.two]}]}`, corev1.HostAlias{IP: ip, Hostnames: []string{"api.two", "api.one"}})
	check(`spec: {`+volumes+`, hostAliases: [{ip: `+ip+`, hostnames: [api.one, api.two]}]}`, both)
}

// TestLoadBalancingThatIsNotConfiguredWell checks that Pods are refused until the ConfigMap is correct, with a helpful message.
func TestLoadBalancingThatIsNotConfiguredWell(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.register(loadBalancing(f.client))
	const text = `spec: {volumes: [{name: a, secret: {secretName: generic-token-kubeconfig}}]}`
	configMap := `the ConfigMap istio-internal-load-balancing in namespace "` + f.namespace + `"`
	f.configMap("istio-namespace", f.namespace)
	f.wantRefusal(text, configMap+` does not contain hosts: set its key "hosts" to the names of the API servers, separated by commas, or delete it`)
	f.configMap("hosts", "not_a_name", "istio-namespace", f.namespace)
	f.wantRefusal(text, configMap+` has the host "not_a_name", which is not a DNS name: its key "hosts" must contain the names of the API servers, separated by commas`)
	f.configMap("hosts", "api.one")
	f.wantRefusal(text, configMap+` does not contain the namespace of the ingress gateway: set its key "istio-namespace" to the namespace of the Service `+
		`istio-ingressgateway-internal, or delete it`)
	f.configMap("hosts", "api.one", "istio-namespace", "nowhere")
	f.wantRefusal(text, `the Service istio-ingressgateway-internal in namespace "nowhere", referenced by `+configMap+
		`, does not exist: create it, or correct or delete the ConfigMap`)
	f.would(`spec: {}`) // other Pods are not affected
	f.gateway("hosts", " api.one , ", "istio-namespace", f.namespace)
	if aliases := f.would(text).Spec.HostAliases; len(aliases) != 1 || !slices.Equal(aliases[0].Hostnames, []string{"api.one"}) {
		t.Errorf("the aliases are %v", aliases)
	}
}
