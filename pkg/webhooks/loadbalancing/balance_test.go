package loadbalancing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit/admittest"
)

// facts is a fake reader. The ConfigMap does not exist if data is nil, the Service does not exist if addresses is nil.
type facts struct {
	client.Reader
	data       map[string]string
	addresses  []string
	configErr  error
	serviceErr error
}

func (f facts) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	missing := apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	switch object := object.(type) {
	case *corev1.ConfigMap:
		if f.configErr != nil {
			return f.configErr
		}
		if f.data == nil || key.Namespace != admittest.Namespace || key.Name != "istio-internal-load-balancing" {
			return missing
		}
		object.Data = f.data
	case *corev1.Service:
		if f.serviceErr != nil {
			return f.serviceErr
		}
		if f.addresses == nil || key.Namespace != "istio" || key.Name != "istio-ingressgateway-internal" {
			return missing
		}
		object.Spec.ClusterIPs = f.addresses
	default:
		return fmt.Errorf("%T must not be read", object)
	}
	return nil
}

const label = "networking.resources.gardener.cloud/to-istio-istio-ingressgateway-internal-tcp-9443"

func pods(f facts) admittest.Handler[*corev1.Pod] {
	return admittest.Pods(NewHandler(f), func(pod *corev1.Pod) {
		pod.Spec.HostAliases = nil
		if delete(pod.Labels, label); len(pod.Labels) == 0 {
			pod.Labels = nil
		}
	})
}

func configured() facts {
	return facts{data: map[string]string{"hosts": "api.one,api.two", "istio-namespace": "istio"}, addresses: []string{"10.0.0.1", "2001:db8::1"}}
}

const (
	secretVolume = `volumes: [{name: a, emptyDir: {}}, {name: k, secret: {secretName: generic-token-kubeconfig-ab12}}]`
	both         = `hostAliases: [{ip: 10.0.0.1, hostnames: [api.one, api.two]}, {ip: "2001:db8::1", hostnames: [api.one, api.two]}]`
	labelled     = `metadata: {labels: {` + label + `: allowed}}`
)

func TestBalancedPods(t *testing.T) {
	spec := func(fields string) string { return "\nspec: {containers: [], " + fields + "}" }
	balanced := func(volumes string) admittest.Case {
		return admittest.Case{Before: spec(volumes), After: labelled + spec(volumes+", "+both)}
	}
	pods(configured()).Run(t, map[string]admittest.Case{
		"a volume of the Secret":           balanced(secretVolume),
		"the plain name":                   balanced(`volumes: [{name: k, secret: {secretName: generic-token-kubeconfig}}]`),
		"a projected volume":               balanced(`volumes: [{name: k, projected: {sources: [{configMap: {name: a}}, {secret: {name: generic-token-kubeconfig-ab12}}]}}]`),
		"another Secret":                   {Before: spec(`volumes: [{name: k, secret: {secretName: my-generic-token-kubeconfig}}]`)},
		"another projected Secret":         {Before: spec(`volumes: [{name: k, projected: {sources: [{secret: {name: kubeconfig}}]}}]`)},
		"a ConfigMap of that name":         {Before: spec(`volumes: [{name: k, configMap: {name: generic-token-kubeconfig}}]`)},
		"no volumes":                       {Before: spec(`volumes: []`)},
		"only a variable of the Secret":    {Before: "\nspec: {containers: [{name: a, env: [{name: A, valueFrom: {secretKeyRef: {name: generic-token-kubeconfig, key: a}}}]}]}"},
		"aliases are not appended twice":   {Before: labelled + spec(secretVolume+", "+both)},
		"other labels and aliases stay":    {Before: "metadata: {labels: {a: b}}" + spec(secretVolume+`, hostAliases: [{ip: 10.0.0.9, hostnames: [x]}]`), After: "metadata: {labels: {a: b, " + label + ": allowed}}" + spec(secretVolume+`, hostAliases: [{ip: 10.0.0.9, hostnames: [x]}, `+strings.TrimPrefix(both, "hostAliases: ["))},
		"an alias gets the hosts it lacks": {Before: spec(secretVolume + `, hostAliases: [{ip: 10.0.0.1, hostnames: [x, api.two]}]`), After: labelled + spec(secretVolume+`, hostAliases: [{ip: 10.0.0.1, hostnames: [x, api.two, api.one]}, {ip: "2001:db8::1", hostnames: [api.one, api.two]}]`)},
		"another value of the label":       {Before: strings.Replace(labelled, "allowed", "denied", 1) + spec(secretVolume), After: labelled + spec(secretVolume+", "+both)},
	})
}

func TestFactsAboutTheGateway(t *testing.T) {
	before := "\nspec: {containers: [], " + secretVolume + "}"
	after := func(aliases string) string {
		return labelled + "\nspec: {containers: [], " + secretVolume + ", hostAliases: [" + aliases + "]}"
	}
	with := func(change func(*facts)) facts {
		f := configured()
		change(&f)
		return f
	}
	hosts := func(hosts string) facts {
		return with(func(f *facts) { f.data["hosts"], f.addresses = hosts, []string{"10.0.0.1"} })
	}
	const configMap = `the ConfigMap istio-internal-load-balancing in namespace "the-namespace"`
	noHosts := configMap + ` does not contain hosts: set its key "hosts" to the names of the API servers, separated by commas, or delete it`
	for name, test := range map[string]struct {
		facts
		admittest.Case
	}{
		"no ConfigMap":           {with(func(f *facts) { f.data = nil }), admittest.Case{Before: before}},
		"one host":               {hosts("a"), admittest.Case{Before: before, After: after("{ip: 10.0.0.1, hostnames: [a]}")}},
		"hosts with blanks":      {hosts(" b, a ,,b\n"), admittest.Case{Before: before, After: after("{ip: 10.0.0.1, hostnames: [b, a]}")}},
		"hosts are empty":        {hosts(""), admittest.Case{Before: before, Code: 403, Refusal: noHosts}},
		"hosts are blank":        {hosts(" , "), admittest.Case{Before: before, Code: 403, Refusal: noHosts}},
		"the key is missing":     {with(func(f *facts) { delete(f.data, "hosts") }), admittest.Case{Before: before, Code: 403, Refusal: noHosts}},
		"a host that is no name": {hosts("a,b_c"), admittest.Case{Before: before, Code: 403, Refusal: configMap + ` has the host "b_c", which is not a DNS name: its key "hosts" must contain the names of the API servers, separated by commas`}},
		"no namespace":           {with(func(f *facts) { f.data["istio-namespace"] = " " }), admittest.Case{Before: before, Code: 403, Refusal: configMap + ` does not contain the namespace of the ingress gateway: set its key "istio-namespace" to the namespace of the Service istio-ingressgateway-internal, or delete it`}},
		"no Service":             {with(func(f *facts) { f.addresses = nil }), admittest.Case{Before: before, Code: 403, Refusal: `the Service istio-ingressgateway-internal in namespace "istio", referenced by ` + configMap + `, does not exist: create it, or correct or delete the ConfigMap`}},
		"a headless Service": {with(func(f *facts) { f.addresses = []string{"None"} }), admittest.Case{
			Before: before, After: labelled + before,
		}},
		"an unreadable ConfigMap": {with(func(f *facts) { f.configErr = errors.New("no connection") }), admittest.Case{Before: before, Code: 503, Refusal: "cannot determine whether to balance the requests of the Pod: the ConfigMap istio-internal-load-balancing in namespace \"the-namespace\" cannot be read: no connection"}},
		"an unreadable Service":   {with(func(f *facts) { f.serviceErr = errors.New("no connection") }), admittest.Case{Before: before, Code: 503, Refusal: "cannot balance the requests of the Pod: the Service istio-ingressgateway-internal in namespace \"istio\" cannot be read: no connection"}},
	} {
		pods(test.facts).Run(t, map[string]admittest.Case{name: test.Case})
	}
}

func TestLabelKey(t *testing.T) {
	for namespace, want := range map[string]string{
		"istio-ingress":               "to-istio-ingress-istio-ingressgateway-internal-tcp-9443",
		strings.Repeat("n", 21):       "to-nnnnnnnnnnnnnnnnnnnnn-istio-ingressgateway-internal-tcp-9443", // 63 characters
		strings.Repeat("n", 21) + "m": "to-nnnnnnnnnnnnnnnnnnnnnm-istio-ingressgateway-internal-t-0421c", // echo -n to-…-9443 | sha256sum
	} {
		if got := labelKey(namespace); got != labelPrefix+want {
			t.Errorf("%s: got %s", namespace, got)
		}
	}
}

func FuzzBalance(f *testing.F) {
	f.Add([]byte(`{"spec":{"hostAliases":[{"ip":"10.0.0.1","hostnames":["a"]},{"ip":"10.0.0.1"}],"volumes":[{"name":"k","secret":{"secretName":"generic-token-kubeconfig"}}]}}`), "a,b", "istio")
	f.Add([]byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"volumes":[{"name":"k","projected":{"sources":[{"secret":{"name":"generic-token-kubeconfig"}},null]}}]}}`), "A, ,_", "")
	f.Fuzz(func(t *testing.T, raw []byte, hosts, namespace string) {
		facts := configured()
		facts.data["hosts"], facts.data["istio-namespace"] = hosts, namespace
		pods(facts).Robust(t, raw)
	})
}
