package networks

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

func node(address string) client.Object {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeExternalIP, Address: "8.8.8.8"}, {Type: corev1.NodeInternalIP, Address: address},
	}}}
}

func pod(address string, change func(*corev1.Pod)) client.Object {
	pod := &corev1.Pod{ObjectMeta: meta("p"), Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: address}}}}
	if change != nil {
		change(pod)
	}
	return pod
}

func service(address string, change func(*corev1.Service)) client.Object {
	service := &corev1.Service{ObjectMeta: meta("s"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIPs: []string{address}}}
	if change != nil {
		change(service)
	}
	return service
}

func info(data map[string]string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "shoot-info"}, Data: data}
}

func TestCheck(t *testing.T) {
	configured := gardencorev1beta1.SeedNetworks{Nodes: ptr.To("10.0.0.0/16"), Pods: "100.96.0.0/11", Services: "100.64.0.0/13"}
	for name, test := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"an empty cluster":         {},
		"addresses that fit":       {objects: []client.Object{node("10.0.3.4"), pod("100.97.0.1", nil), service("100.64.0.10", nil)}},
		"a node elsewhere":         {[]client.Object{node("10.1.3.4")}, []string{"nodes is 10.0.0.0/16, but the address of Node n is 10.1.3.4"}},
		"a pod elsewhere":          {[]client.Object{pod("10.0.0.1", nil)}, []string{"pods is 100.96.0.0/11, but the address of Pod default/p is 10.0.0.1"}},
		"a Service elsewhere":      {[]client.Object{service("10.0.0.1", nil)}, []string{"services is 100.64.0.0/13, but the address of Service default/s is 10.0.0.1"}},
		"all elsewhere":            {[]client.Object{node("1.1.1.1"), pod("1.1.1.2", nil), service("1.1.1.3", nil)}, []string{"Node", "Pod", "Service"}},
		"a pod of the host":        {objects: []client.Object{pod("10.0.0.1", func(p *corev1.Pod) { p.Spec.HostNetwork = true })}},
		"a pod of a pool":          {objects: []client.Object{pod("10.0.0.1", func(p *corev1.Pod) { p.Annotations = map[string]string{annotationCalicoPools: "[]"} })}},
		"a pod of another family":  {objects: []client.Object{pod("2001:db8::1", nil)}},
		"a headless Service":       {objects: []client.Object{service("None", nil)}},
		"a load balancer":          {objects: []client.Object{service("10.0.0.1", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer })}},
		"a shoot that fits":        {objects: []client.Object{info(map[string]string{"podNetwork": "100.96.0.0/11", "serviceNetwork": "100.64.0.0/13"}), node("1.1.1.1")}},
		"a shoot with other nodes": {[]client.Object{info(map[string]string{"podNetwork": "100.96.0.0/11", "serviceNetwork": "100.64.0.0/13", "nodeNetwork": "10.9.0.0/16"})}, []string{"nodes is 10.0.0.0/16, but nodeNetwork"}},
		"a shoot with others":      {[]client.Object{info(map[string]string{"podNetwork": "100.96.0.0/12"})}, []string{"pods is 100.96.0.0/11", "services is 100.64.0.0/13"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(t.Context(), fake.NewClientBuilder().WithObjects(test.objects...).Build(), configured)
			if errors.Is(err, ErrMismatch) != (len(test.want) > 0) || err != nil && !errors.Is(err, ErrMismatch) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error %q lacks %q", err, want)
				}
			}
		})
	}
}
