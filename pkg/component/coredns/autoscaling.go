package coredns

import (
	"encoding/json"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// nameAutoscaler is the name of the objects of the autoscaler in the mode cluster-proportional.
const nameAutoscaler = "coredns-autoscaler"

// Limits of the horizontal autoscaler (Gardener).
const (
	maxReplicas        = 5
	replicasPerZone    = 2
	averageUtilization = 70
)

// selectorAutoscaler selects the Pods of the autoscaler.
var selectorAutoscaler = map[string]string{"k8s-app": nameAutoscaler}

// autoscaling returns what adapts the number of replicas: to the use of CPU, or to the number of nodes and cores.
func autoscaling(values Values) ([]client.Object, error) {
	if values.Mode == corev1beta1.CoreDNSAutoscalingModeClusterProportional {
		return proportional(values)
	}
	return []client.Object{&autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: Name,
			Labels: parts.SystemComponent(map[string]string{"high-availability-config.resources.gardener.cloud/type": parts.TypeServer}),
		},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: Name},
			MinReplicas:    ptr.To[int32](minReplicas), MaxReplicas: int32(max(maxReplicas, replicasPerZone*values.Zones)), //nolint:gosec // few zones
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](averageUtilization)},
			}}},
		},
	}}, nil
}

// proportional returns the autoscaler that counts nodes and cores.
func proportional(values Values) ([]client.Object, error) {
	linear, err := json.Marshal(map[string]any{
		"coresPerReplica": 256, "nodesPerReplica": 16, "min": minReplicas, "preventSinglePointFailure": true, "includeUnschedulableNodes": true,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the parameters of the autoscaler of CoreDNS: %w", err)
	}
	labels := parts.SystemComponent(selectorAutoscaler)
	deployment, err := parts.Workload{
		Namespace: metav1.NamespaceSystem, Name: nameAutoscaler, Selector: selectorAutoscaler, Labels: labels,
		PodLabels: parts.SystemComponent(map[string]string{
			"networking.gardener.cloud/to-dns": "allowed", "networking.gardener.cloud/to-apiserver": "allowed",
		}),
		Replicas: 1, PriorityClass: parts.PriorityClusterCritical, ServiceAccount: nameAutoscaler, MountsToken: true,
		Container: corev1.Container{
			Name: "autoscaler", Image: values.ImageAutoscaler, Command: []string{
				"/cluster-proportional-autoscaler", "--namespace=" + metav1.NamespaceSystem, "--configmap=" + nameAutoscaler,
				"--target=deployment/" + Name, "--logtostderr=true", "--v=2",
			},
			Env: parts.ServerHost(values.ServerHost), Resources: autoscalerResources(values),
		},
	}.Deployment()
	if err != nil {
		return nil, err
	}
	deployment.Spec.Template.Spec.Tolerations = parts.CriticalTolerations()
	asNobody(&deployment.Spec.Template.Spec)
	account := parts.Account{Namespace: metav1.NamespaceSystem, Name: nameAutoscaler}
	objects := []client.Object{
		parts.ServiceAccount(metav1.NamespaceSystem, nameAutoscaler, labels),
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: nameAutoscaler, Labels: labels},
			Data:       map[string]string{"linear": string(linear)},
		},
		deployment,
	}
	objects = append(objects, parts.ClusterRights("system:"+nameAutoscaler, labels, []rbacv1.PolicyRule{
		parts.Rule("", []string{"nodes"}, "get", "list", "watch"),
	}, account)...)
	objects = append(objects, parts.Rights(metav1.NamespaceSystem, nameAutoscaler, labels, scalerRules(), account)...)
	if values.VerticalPodAutoscaler {
		objects = append(objects, parts.Autoscaler(deployment, "10Mi"))
	}
	return objects, nil
}

// autoscalerResources limits the memory only if nothing adapts the requests (Gardener).
func autoscalerResources(values Values) corev1.ResourceRequirements {
	requirements := corev1.ResourceRequirements{Requests: parts.Requests("20m", "10Mi")}
	if !values.VerticalPodAutoscaler {
		requirements.Limits = corev1.ResourceList{corev1.ResourceMemory: parts.Requests("0", "70Mi")[corev1.ResourceMemory]}
	}
	return requirements
}

// scalerRules are the permissions of the autoscaler in the namespace: to read its parameters, and to scale one Deployment.
func scalerRules() []rbacv1.PolicyRule {
	parameters, scale := parts.Rule("", []string{"configmaps"}, "get"), parts.Rule("apps", []string{"deployments/scale"}, "get", "update")
	parameters.ResourceNames, scale.ResourceNames = []string{nameAutoscaler}, []string{Name}
	return []rbacv1.PolicyRule{parameters, scale}
}

// dnsRules are the permissions of CoreDNS: to read what has names.
func dnsRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		parts.Rule("", []string{"endpoints", "services", "pods", "namespaces"}, "list", "watch"),
		parts.Rule("discovery.k8s.io", []string{"endpointslices"}, "list", "watch"),
	}
}
