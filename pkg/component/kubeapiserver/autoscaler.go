package kubeapiserver

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// Autoscaler returns the HorizontalPodAutoscaler of the Deployment. It is applied after the Deployment, because it
// ignores a Deployment with 0 replicas.
func Autoscaler(namespace string, scaling Scaling) ([]client.Object, error) {
	return AutoscalerNamed(namespace, Name, scaling)
}

// AutoscalerNamed is [Autoscaler] for an API server with another name.
func AutoscalerNamed(namespace, name string, scaling Scaling) ([]client.Object, error) {
	metric := func(resourceName corev1.ResourceName, average string) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: resourceName, Target: autoscalingv2.MetricTarget{
				Type: autoscalingv2.AverageValueMetricType, AverageValue: ptr.To(resource.MustParse(average)),
			},
		}}
	}
	down := &autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: ptr.To[int32](1800), SelectPolicy: ptr.To(autoscalingv2.MaxChangePolicySelect),
		Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 300}},
	}
	if scaling.NeverDown {
		down.SelectPolicy = ptr.To(autoscalingv2.DisabledPolicySelect)
	}
	return []client.Object{&autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: parts.Merge(selector, map[string]string{highavailability.LabelType: parts.TypeServer}),
		},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			MinReplicas:    ptr.To(scaling.Min), MaxReplicas: scaling.Max,
			Metrics: []autoscalingv2.MetricSpec{metric(corev1.ResourceCPU, "6"), metric(corev1.ResourceMemory, "24G")},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleUp: &autoscalingv2.HPAScalingRules{
					StabilizationWindowSeconds: ptr.To[int32](60), SelectPolicy: ptr.To(autoscalingv2.MaxChangePolicySelect),
					Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 60}},
				},
				ScaleDown: down,
			},
		},
	}}, nil
}
