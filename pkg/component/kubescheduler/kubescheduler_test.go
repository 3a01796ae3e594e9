package kubescheduler

import (
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values() Values {
	return Values{
		Namespace: "shoot--dev--one", Image: "kube-scheduler:v1.37.1", Replicas: 1, VerticalPodAutoscaler: true,
		Config:  corev1beta1.KubeSchedulerConfig{Profile: ptr.To(corev1beta1.SchedulingProfileBalanced)},
		Mounted: Mounted{ClientCA: "ca-client-bundle-1", Server: "kube-scheduler-server-1", Kubeconfig: "generic-token-kubeconfig-1"},
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

// TestBinPacking checks that the profile adds a scheduler and keeps the default one.
func TestBinPacking(t *testing.T) {
	packing := values()
	packing.VerticalPodAutoscaler = false
	packing.Config.Profile = ptr.To(corev1beta1.SchedulingProfileBinPacking)
	packing.Config.FeatureGates = map[string]bool{"B": false, "A": true}
	objects, err := Objects(packing)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "bin-packing", objects)
}
