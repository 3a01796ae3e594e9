package kubeproxy

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values() Values {
	return Values{
		Server: "https://api.one.dev.internal.example.org", CABundle: "bundle", Mode: corev1beta1.ProxyModeIPTables, PodNetworks: []string{"100.96.0.0/16", "2001:db8::/56"},
	}
}

func pool(version string) Pool {
	return Pool{Name: "small", Version: version, Image: "kube-proxy:v" + version}
}

// podOf returns the Pods of a pool.
func podOf(t *testing.T, objects []client.Object) corev1.PodSpec {
	t.Helper()
	daemon, is := objects[0].(*appsv1.DaemonSet)
	if !is {
		t.Fatalf("%T is no DaemonSet", objects[0])
	}
	return daemon.Spec.Template.Spec
}

func TestObjects(t *testing.T) {
	shared, err := Objects(values())
	if err != nil {
		t.Fatal(err)
	}
	of, err := PoolObjects(values(), pool("1.37.1"))
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "iptables", append(shared, of...))
}

// TestSettings checks the settings of a Shoot: the mode, feature gates, and an autoscaler in the cluster.
func TestSettings(t *testing.T) {
	other := values()
	other.Mode, other.FeatureGates, other.VerticalPodAutoscaler = corev1beta1.ProxyModeIPVS, map[string]bool{"B": true, "A": false}, true
	shared, err := Objects(other)
	if err != nil {
		t.Fatal(err)
	}
	of, err := PoolObjects(other, pool("1.33.5"))
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "ipvs", append(shared, of...))
	other.Mode = "Other"
	if _, err := Objects(other); err == nil || !strings.Contains(err.Error(), "spec.kubernetes.kubeProxy.mode") {
		t.Errorf("an unknown mode: %v", err)
	}
}

// TestMode checks that a change of the mode reaches the Pods of the pool, and which modes need a clean-up of previous rules.
func TestMode(t *testing.T) {
	var configs []string
	for mode, cleans := range map[corev1beta1.ProxyMode]bool{
		corev1beta1.ProxyModeIPTables: true, corev1beta1.ProxyModeIPVS: true, corev1beta1.ProxyModeNFTables: false,
	} {
		other := values()
		other.Mode = mode
		objects, err := PoolObjects(other, pool("1.37.1"))
		if err != nil {
			t.Fatal(err)
		}
		pod := podOf(t, objects)
		if has := pod.InitContainers[0].Name == "cleanup"; has != cleans {
			t.Errorf("%s: removes rules of the previous mode: %t", mode, has)
		}
		for _, volume := range pod.Volumes {
			if volume.Name == "config" {
				configs = append(configs, volume.ConfigMap.Name)
			}
		}
	}
	if len(configs) != 3 || configs[0] == configs[1] || configs[1] == configs[2] {
		t.Errorf("the Pods mount %v", configs)
	}
}

// TestPrivileges checks that only versions with a defect run with all privileges.
func TestPrivileges(t *testing.T) {
	for version, want := range map[string]bool{"1.32.9": false, "1.33.0": true, "1.33.5": true, "1.33.6": false, "1.37.1": false} {
		objects, err := PoolObjects(values(), pool(version))
		if err != nil {
			t.Fatal(err)
		}
		context := podOf(t, objects).Containers[0].SecurityContext
		if privileged := context.Privileged != nil; privileged != want {
			t.Errorf("%s: privileged %t", version, privileged)
		}
		if !want && (len(context.Capabilities.Add) != 2 || context.Capabilities.Drop[0] != corev1.Capability("ALL")) {
			t.Errorf("%s: capabilities %+v", version, context.Capabilities)
		}
	}
}
