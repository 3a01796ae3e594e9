package kubecontrollermanager

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
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

// TestNodes compares the objects for a shoot with workers that sets all settings.
func TestNodes(t *testing.T) {
	with := values()
	with.Mounted.KubeletCA, with.RuntimeConfig, with.PodNetworks = "ca-kubelet-1", nil, []string{"100.96.0.0/11", "2001:db8::/48"}
	second := &metav1.Duration{Duration: time.Second}
	with.Config = corev1beta1.KubeControllerManagerConfig{
		NodeCIDRMaskSize: ptr.To[int32](24), NodeCIDRMaskSizeIPv6: ptr.To[int32](64), NodeMonitorGracePeriod: second,
		HorizontalPodAutoscalerConfig: &corev1beta1.HorizontalPodAutoscalerConfig{
			CPUInitializationPeriod: second, DownscaleStabilization: second, InitialReadinessDelay: second, SyncPeriod: second, Tolerance: ptr.To(0.25),
		},
	}
	objects, err := Objects(with)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "nodes", objects)
}

// TestMaskSizes checks the flags for the size of a node's network, which depend on the address families.
func TestMaskSizes(t *testing.T) {
	config := corev1beta1.KubeControllerManagerConfig{NodeCIDRMaskSize: ptr.To[int32](24), NodeCIDRMaskSizeIPv6: ptr.To[int32](64)}
	for networks, want := range map[string]string{
		"100.96.0.0/11":               "--node-cidr-mask-size=24",
		"2001:db8::/48":               "--node-cidr-mask-size-ipv6=64",
		"100.96.0.0/11 2001:db8::/48": "--node-cidr-mask-size-ipv4=24 --node-cidr-mask-size-ipv6=64",
	} {
		flags := networkFlags(Values{PodNetworks: strings.Fields(networks), Config: config})
		if got := strings.Join(flags[2:], " "); got != want {
			t.Errorf("%s: %s, want %s", networks, got, want)
		}
	}
}

// TestControllers checks that the controllers of disabled APIs do not run.
func TestControllers(t *testing.T) {
	list := controllers(map[string]bool{"apps/v1": false, "batch/v1": true}, false)
	if !strings.Contains(list, "-deployment-controller") || strings.Contains(list, "-job-controller") || !strings.Contains(list, "-node-lifecycle-controller") {
		t.Error(list)
	}
}
