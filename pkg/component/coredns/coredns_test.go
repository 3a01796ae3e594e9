package coredns

import (
	"regexp"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values() Values {
	return Values{
		Image: "coredns:v1", ImageAutoscaler: "cluster-proportional-autoscaler:v1", ClusterDomain: "cluster.local", ClusterIPs: []string{"10.0.0.10"},
		Mode: corev1beta1.CoreDNSAutoscalingModeHorizontal, Zones: 3, ServerHost: "api.one.dev.internal.example.org",
	}
}

func TestObjects(t *testing.T) {
	objects, err := Objects(values())
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "horizontal", objects)
}

// TestClusterProportional checks the other mode of autoscaling, with suffixes and an autoscaler in the cluster.
func TestClusterProportional(t *testing.T) {
	other := values()
	other.Mode, other.CommonSuffixes = corev1beta1.CoreDNSAutoscalingModeClusterProportional, []string{"gardener.cloud", "example.org"}
	other.VerticalPodAutoscaler = true
	objects, err := Objects(other)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "cluster-proportional", objects)
}

// TestRewrites applies the rules to names, as CoreDNS does.
func TestRewrites(t *testing.T) {
	rule := regexp.MustCompile(`name regex (\S+) (\S+)`)
	text := rewrites("cluster.local", []string{"gardener.cloud"})
	for name, want := range map[string]string{
		"web.default.svc.cluster.local.svc.cluster.local.": "web.default.svc.cluster.local.",
		"api.gardener.cloud.svc.cluster.local.":            "api.gardener.cloud.",
		"web.default.svc.cluster.local.":                   "",
		"gardener-cloud.svc.cluster.local.":                "",
		"api.gardenerXcloud.svc.cluster.local.":            "",
	} {
		got := ""
		for _, found := range rule.FindAllStringSubmatch(text, -1) {
			expression := regexp.MustCompile(found[1])
			if match := expression.FindStringSubmatch(name); match != nil && got == "" {
				got = strings.Replace(found[2], "{1}", match[1], 1)
			}
		}
		if strings.TrimSuffix(got, ".") != strings.TrimSuffix(want, ".") {
			t.Errorf("%s becomes %q, want %q", name, got, want)
		}
	}
}

// TestTwoFamilies checks that the DNS server has an address of each IP family.
func TestTwoFamilies(t *testing.T) {
	both := values()
	both.ClusterIPs = []string{"10.0.0.10", "2001:db8:1::a"}
	service := service(both)
	if len(service.Spec.ClusterIPs) != 2 || service.Spec.ClusterIP != "10.0.0.10" || ptr.Deref(service.Spec.IPFamilyPolicy, "") != corev1.IPFamilyPolicyPreferDualStack {
		t.Errorf("the Service has %+v", service.Spec)
	}
}

// TestReplicas checks that more zones allow more replicas, and that the other autoscaler alone decides about them.
func TestReplicas(t *testing.T) {
	for zones, want := range map[int]int32{0: 5, 2: 5, 3: 6} {
		of := values()
		of.Zones = zones
		objects, err := autoscaling(of)
		if err != nil {
			t.Fatal(err)
		}
		scaler, is := objects[0].(*autoscalingv2.HorizontalPodAutoscaler)
		if !is || scaler.Spec.MaxReplicas != want {
			t.Errorf("%d zones: %+v, want at most %d replicas", zones, objects[0], want)
		}
	}
	proportional := values()
	proportional.Mode = corev1beta1.CoreDNSAutoscalingModeClusterProportional
	deployment, err := deployment(proportional)
	if err != nil || deployment.Spec.Replicas != nil {
		t.Errorf("the component sets %v replicas: %v", deployment.Spec.Replicas, err)
	}
}
