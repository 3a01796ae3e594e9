package vpa

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values() Values {
	return Values{
		Namespace:                "garden",
		AdmissionControllerImage: "vpa-admission-controller:v1", RecommenderImage: "vpa-recommender:v1", UpdaterImage: "vpa-updater:v1",
		ServerCertificate: "vpa-admission-controller-server-12345678", CABundle: []byte("bundle"),
	}
}

func TestObjects(t *testing.T) {
	for name, change := range map[string]func(*Values){
		"seed": func(*Values) {},
		"seed-with-settings": func(v *Values) {
			v.FeatureGates = map[string]bool{"PerVPAConfig": false, "InPlace": true}
			v.MaxAllowed = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourceCPU: resource.MustParse("8")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := values()
			change(&v)
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name, objects)
		})
	}
}

func TestMaximumOfAnotherResource(t *testing.T) {
	v := values()
	v.MaxAllowed = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	if _, err := Objects(v); err == nil || !strings.Contains(err.Error(), `settings.verticalPodAutoscaler.maxAllowed: "example.com/gpu"`) {
		t.Errorf("got the error %v", err)
	}
}
