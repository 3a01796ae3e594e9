package vpa

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func shootValues() ShootValues {
	spec := corev1beta1.ShootSpec{
		Provider:   corev1beta1.Provider{Workers: []corev1beta1.Worker{{Name: "a"}}},
		Kubernetes: corev1beta1.Kubernetes{Version: "1.37.1", VerticalPodAutoscaler: &corev1beta1.VerticalPodAutoscaler{Enabled: true}},
	}
	corev1beta1.SetDefaultsShootSpec(&spec, "garden-dev", "one")
	return ShootValues{
		Namespace: "shoot--dev--one", AdmissionControllerImage: "vpa-admission-controller:v1", RecommenderImage: "vpa-recommender:v1",
		UpdaterImage: "vpa-updater:v1", Config: *spec.Kubernetes.VerticalPodAutoscaler, VerticalPodAutoscaler: true,
		ServerCertificate: "vpa-admission-controller-server-12345678", Kubeconfig: "generic-token-kubeconfig-12345678",
	}
}

func TestShoot(t *testing.T) {
	objects, err := ControlPlaneObjects(shootValues())
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "control-plane", append(objects, AccessSecrets("shoot--dev--one")...))
	if objects, err = ShootObjects("shoot--dev--one", []byte("bundle")); err != nil {
		t.Fatal(err)
	}
	var others []client.Object
	for _, object := range objects {
		if golden.Unstructured(t, object).GetKind() != "CustomResourceDefinition" {
			others = append(others, object)
		}
	}
	if len(objects)-len(others) != 2 {
		t.Errorf("the shoot has %d kinds of autoscalers", len(objects)-len(others))
	}
	golden.Check(t, "shoot", others)
}

// TestShootSettings checks that each setting of a Shoot is a flag, and that only CPU and memory can have a maximum.
func TestShootSettings(t *testing.T) {
	values := shootValues()
	values.Config.FeatureGates = map[string]bool{"InPlace": true}
	values.Config.MaxAllowed = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Gi")}
	objects, err := ControlPlaneObjects(values)
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]string{}
	for _, object := range objects {
		if deployment, is := object.(*appsv1.Deployment); is {
			flags[deployment.Name] = strings.Join(deployment.Spec.Template.Spec.Containers[0].Args, " ") + " "
		}
	}
	for name, want := range map[string][]string{
		admissionController: {"--feature-gates=InPlace=true ", "--register-webhook=false "},
		recommender: {
			"--container-recommendation-max-allowed-memory=64Gi ", "--recommendation-margin-fraction=0.15 ", "--recommender-interval=1m0s ",
			"--target-cpu-percentile=0.9 ", "--recommendation-lower-bound-cpu-percentile=0.5 ", "--recommendation-upper-bound-cpu-percentile=0.95 ",
			"--target-memory-percentile=0.9 ", "--recommendation-lower-bound-memory-percentile=0.5 ", "--recommendation-upper-bound-memory-percentile=0.95 ",
			"--cpu-histogram-decay-half-life=24h0m0s ", "--memory-histogram-decay-half-life=24h0m0s ", "--memory-aggregation-interval=24h0m0s ",
			"--memory-aggregation-interval-count=8 ", "--update-worker-count=10 ",
		},
		updater: {
			"--eviction-tolerance=0.5 ", "--eviction-rate-burst=1 ", "--eviction-rate-limit=-1 ", "--evict-after-oom-threshold=10m0s ", "--updater-interval=1m0s ",
		},
	} {
		for _, flag := range want {
			if !strings.Contains(flags[name], flag) {
				t.Errorf("%s has no flag %s: %s", name, flag, flags[name])
			}
		}
	}
	values.Config.MaxAllowed["storage"] = resource.MustParse("1Gi")
	if _, err := ControlPlaneObjects(values); err == nil {
		t.Error("a maximum of storage is accepted")
	}
}
