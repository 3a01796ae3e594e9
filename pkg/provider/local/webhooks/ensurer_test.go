package webhooks

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-k8s/trellis/pkg/extension/controlplane"
)

func deploymentOf(name string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: name, Command: []string{"/" + name, "--leader-elect=true"}}}
	return d
}

// TestShoots checks that each program gets the flags that it supports, once.
func TestShoots(t *testing.T) {
	for name, test := range map[string]struct {
		change func(context.Context, controlplane.Context, *appsv1.Deployment, *appsv1.Deployment) error
		flags  []string
	}{
		"kube-apiserver":          {ShootEnsurer{}.EnsureKubeAPIServerDeployment, nil},
		"kube-controller-manager": {ShootEnsurer{}.EnsureKubeControllerManagerDeployment, []string{"--cloud-provider=external"}},
		"kube-scheduler":          {ShootEnsurer{}.EnsureKubeSchedulerDeployment, nil},
	} {
		d := deploymentOf(name)
		for range 2 {
			if err := test.change(t.Context(), nil, d, nil); err != nil {
				t.Fatal(err)
			}
			want := append([]string{"/" + name, "--leader-elect=true"}, test.flags...)
			if got := d.Spec.Template.Spec.Containers[0].Command; !slices.Equal(got, want) || d.Spec.Template.Labels[LabelInjectedBy] != "provider-local" {
				t.Errorf("%s: %v, labels %v, want %v", name, got, d.Spec.Template.Labels, want)
			}
		}
	}
	kubelet := &unstructured.Unstructured{Object: map[string]any{"kind": "KubeletConfiguration", "failSwapOn": true}}
	if err := (ShootEnsurer{}).EnsureKubeletConfiguration(t.Context(), nil, "1.37.1", kubelet, nil); err != nil || kubelet.Object["failSwapOn"] != false || kubelet.Object["failCgroupV1"] != false {
		t.Errorf("%v, %v", kubelet.Object, err)
	}
	for _, limit := range []string{"evictionHard", "evictionSoft"} {
		if found, _, err := unstructured.NestedString(kubelet.Object, limit, "nodefs.available"); found != "0%" || err != nil {
			t.Errorf("machines evict Pods because of the disk of their host: %s is %v, %v", limit, kubelet.Object[limit], err)
		}
	}
}

func TestExposure(t *testing.T) {
	for kind, want := range map[corev1.ServiceType]string{corev1.ServiceTypeLoadBalancer: "address", corev1.ServiceTypeClusterIP: ""} {
		service := &corev1.Service{Spec: corev1.ServiceSpec{Type: kind}}
		if err := (ExposureEnsurer{}).EnsureKubeAPIServerService(t.Context(), nil, service, nil); err != nil || service.Annotations[AnnotationExposure] != want {
			t.Errorf("%s: %v, %v", kind, service.Annotations, err)
		}
	}
}
