package apply

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

func TestWaveOf(t *testing.T) {
	for wave, kinds := range map[Wave][]string{
		WaveNamespaces:  {"Namespace", "PriorityClass.scheduling.k8s.io"},
		WaveDefinitions: {"CustomResourceDefinition.apiextensions.k8s.io"},
		WaveConfiguration: {
			"ServiceAccount", "Secret", "ConfigMap", "Service", "ResourceQuota", "LimitRange", "PersistentVolume",
			"PersistentVolumeClaim", "Endpoints", "ClusterRole.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io",
			"StorageClass.storage.k8s.io", "CSIDriver.storage.k8s.io", "PodDisruptionBudget.policy",
			"NetworkPolicy.networking.k8s.io", "IngressClass.networking.k8s.io", "RuntimeClass.node.k8s.io",
			"FlowSchema.flowcontrol.apiserver.k8s.io",
		},
		WaveWorkloads: {
			"Pod", "ReplicationController", "Deployment.apps", "DaemonSet.apps", "StatefulSet.apps", "ReplicaSet.apps",
			"Deployment.extensions", "Job.batch", "CronJob.batch", "HorizontalPodAutoscaler.autoscaling", "Ingress.networking.k8s.io",
		},
		WaveCustomResources: {
			"Widget.example.com", "VerticalPodAutoscaler.autoscaling.k8s.io", "Namespace.example.com", "Secret.example.com",
			"CustomResourceDefinition.example.com", "APIService.example.com",
			"PriorityClass.example.com", "Gateway.gateway.networking.k8s.io",
		},
		WaveAdmission: {
			"APIService.apiregistration.k8s.io", "ValidatingWebhookConfiguration.admissionregistration.k8s.io",
			"MutatingWebhookConfiguration.admissionregistration.k8s.io", "ValidatingAdmissionPolicy.admissionregistration.k8s.io",
			"ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io",
		},
	} {
		for _, text := range kinds {
			if kind := schema.ParseGroupKind(text); WaveOf(kind) != wave {
				t.Errorf("%s is applied in wave %d, want %d", kind, WaveOf(kind), wave)
			}
		}
	}
}

func TestWavesAreInTheOrderOfApplying(t *testing.T) {
	waves := []Wave{WaveNamespaces, WaveDefinitions, WaveRoles, WaveConfiguration, WaveWorkloads, WaveCustomResources, WaveAdmission}
	if !slices.IsSorted(waves) {
		t.Errorf("the waves %v are not in order", waves)
	}
}

func TestPropagation(t *testing.T) {
	for group, want := range map[string]*metav1.DeletionPropagation{
		"apps": ptr.To(metav1.DeletePropagationForeground), "extensions": ptr.To(metav1.DeletePropagationForeground),
		"batch": ptr.To(metav1.DeletePropagationForeground), "": nil, "autoscaling": nil, "apps.example.com": nil,
	} {
		if got := propagation(group); !ptr.Equal(got, want) {
			t.Errorf("group %q: %v, want %v", group, ptr.Deref(got, "none"), ptr.Deref(want, "none"))
		}
	}
}
