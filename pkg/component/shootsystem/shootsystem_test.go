package shootsystem

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestObjects(t *testing.T) {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: corev1beta1.ShootSpec{
		Region: "local", Provider: corev1beta1.Provider{Type: "local"}, Kubernetes: corev1beta1.Kubernetes{Version: "1.37.1"}, DNS: &corev1beta1.DNS{Domain: ptr.To("one.example.org")},
		Maintenance: &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0100", End: "230000+0100"}},
	}}
	golden.Check(t, "system", Objects(Values{Shoot: shoot, Project: "dev", ServiceNetworks: []string{"100.64.0.0/13"}, Extensions: []string{"a", "b"}}))
	golden.Check(t, "namespaces", append(Namespaces(false, nil), Namespaces(true, []string{"a", "b"})...))
	policies, err := NetworkPolicies([]string{"100.64.0.10", "fd30:1319:f1e:230b::1"})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "network-policies", policies)
	if _, err := NetworkPolicies([]string{"example.org"}); err == nil {
		t.Error("a name is accepted as the address of a DNS server")
	}
	golden.Check(t, "access", Access())
	secrets, err := AccessSecrets(AccessValues{Namespace: "shoot--dev--one", Inside: "https://kube-apiserver.shoot--dev--one.svc", Outside: "https://api.one.example.org"})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "access-secrets", secrets)
}
