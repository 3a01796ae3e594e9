package machinecontrollermanager

import (
	"testing"

	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Namespace: "shoot--dev--one", Image: "machine-controller-manager:v1", Replicas: 1, Kubeconfig: "generic-token-kubeconfig-12345678", VerticalPodAutoscaler: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "seed", append(objects, AccessSecret("shoot--dev--one")))
	golden.Check(t, "shoot", ShootObjects())
}
