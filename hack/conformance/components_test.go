package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestComponentsAreReady checks that the tests wait for DNS and the tunnel.
func TestComponentsAreReady(t *testing.T) {
	deployment := func(name string, available int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}, Status: appsv1.DeploymentStatus{AvailableReplicas: available},
		}
	}
	for name, test := range map[string]struct {
		tunnel *appsv1.Deployment
		want   string
	}{
		"no agent":  {deployment("vpn-shoot", 0), "the Deployment vpn-shoot has no available Pod"},
		"one agent": {deployment("vpn-shoot", 1), ""},
		"no tunnel": {deployment("other", 1), `"vpn-shoot" not found`},
	} {
		err := componentsAreReady(t.Context(), fake.NewClientset(deployment("coredns", 2), test.tunnel))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

func TestSuspended(t *testing.T) {
	resource := &resourcesv1alpha1.ManagedResource{}
	if suspended(resource) {
		t.Error("a new ManagedResource counts as suspended")
	}
	resource.Status.Conditions = []resourcesv1alpha1.Condition{{Reason: resourcesv1alpha1.ReasonManagedResourceIgnored}}
	if !suspended(resource) {
		t.Error("the reason of the condition is not recognized")
	}
}
