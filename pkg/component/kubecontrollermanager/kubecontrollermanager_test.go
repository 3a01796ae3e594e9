package kubecontrollermanager

import (
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values() Values {
	return Values{
		Namespace: "shoot--dev--one", Image: "kube-controller-manager:v1.37.1", Replicas: 1, VerticalPodAutoscaler: true, ServiceNetworks: []string{"100.64.0.0/13"},
		RuntimeConfig: map[string]bool{"apps/v1": false, "batch/v1": true},
		Mounted: Mounted{
			CA: "ca-bundle-1", ClientCA: "ca-client-1", ServiceAccountKey: "service-account-key-1", Server: "kube-controller-manager-server-1", Kubeconfig: "generic-token-kubeconfig-1",
		},
	}
}

func TestObjects(t *testing.T) {
	objects, err := Objects(values())
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "seed", append(objects, AccessSecret("shoot--dev--one")))
	golden.Check(t, "shoot", ShootObjects())
}

// TestControllers checks that the controllers of disabled APIs do not run.
func TestControllers(t *testing.T) {
	list := controllers(map[string]bool{"apps/v1": false, "batch/v1": true})
	if !strings.Contains(list, "-deployment-controller") || strings.Contains(list, "-job-controller") || !strings.Contains(list, "-node-lifecycle-controller") {
		t.Error(list)
	}
}
