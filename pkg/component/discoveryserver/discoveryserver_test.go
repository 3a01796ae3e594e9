package discoveryserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/issuer"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

// TestObjects compares the objects, with and without a load balancer of the server.
func TestObjects(t *testing.T) {
	values := Values{
		Namespace: "garden", Image: "registry.example.org/discovery-server:v1", Replicas: 2, Certificate: "discovery-tls", Kubeconfig: "generic-token-kubeconfig-1",
		Identities: issuer.Documents{Configuration: "{}", Keys: `{"keys":[]}`},
	}
	balanced := values
	balanced.Balancer = &exposure.Balancer{Annotations: map[string]string{"example.org/network": "public"}, Class: ptr.To("example.org/local"), TrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal}
	for name, given := range map[string]Values{"gateway": values, "balancer": balanced} {
		objects, err := RuntimeObjects(given)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, objects)
	}
	golden.Check(t, "virtual", VirtualObjects("discovery.example.org"))
}

// TestRights checks that the server has exactly the right that it uses.
func TestRights(t *testing.T) {
	want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}}}
	for _, object := range VirtualObjects("discovery.example.org") {
		switch object := object.(type) {
		case *rbacv1.Role:
			if object.Namespace != "gardener-system-shoot-issuer" || !equality.Semantic.DeepEqual(object.Rules, want) {
				t.Errorf("the Role in %s has the rules %v", object.Namespace, object.Rules)
			}
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
			t.Errorf("the server has rights outside of its namespace: %s", object.GetName())
		}
	}
}
