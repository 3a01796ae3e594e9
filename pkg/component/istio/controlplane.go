package istio

import (
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/rbac"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

const (
	controlPlane = "istiod"
	configMap    = "istio"
	portReady    = 8080
	portWebhook  = 10250
	portXDS      = 15012
	portMetrics  = 15014
)

// mesh is the configuration of the mesh. Gateways write each connection to their log.
const mesh = `accessLogFile: /dev/stdout
defaultConfig:
  discoveryAddress: istiod.istio-system.svc:15012
defaultProviders:
  metrics: [prometheus]
enablePrometheusMerge: true
rootNamespace: istio-system
trustDomain: cluster.local
`

// ControlPlaneValues are the inputs of Istio's control plane.
type ControlPlaneValues struct {
	// Image is the reference of the image named by ImageControlPlane.
	Image string
	// Zones of the cluster.
	Zones []string
	// Replicas is the number of replicas of a new Deployment, and the least of its autoscaler.
	Replicas int32
}

var controlPlaneLabels = map[string]string{"app": controlPlane, "istio": "pilot"}

// ControlPlane returns the objects of Istio's control plane.
func ControlPlane(values ControlPlaneValues) ([]client.Object, error) {
	deployment, err := controlPlaneDeployment(values)
	if err != nil {
		return nil, err
	}
	account := parts.Account{Namespace: constants.IstioSystemNamespace, Name: controlPlane}
	objects := []client.Object{
		namespace(constants.IstioSystemNamespace, values.Zones, map[string]string{constants.LabelGardenRole: constants.RoleIstioSystem}),
		parts.ServiceAccount(constants.IstioSystemNamespace, controlPlane, clone(controlPlaneLabels)),
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: constants.IstioSystemNamespace, Name: configMap, Labels: clone(controlPlaneLabels)},
			Data:       map[string]string{"mesh": mesh, "meshNetworks": "networks: {}\n"},
		},
		deployment, controlPlaneService(), parts.Budget(deployment), Autoscaler(deployment, max(values.Replicas, 1), 5, "80"), webhook(),
	}
	objects = append(objects, parts.ClusterRights(controlPlane, clone(controlPlaneLabels), controlPlaneRules(), account)...)
	return append(objects, parts.Rights(constants.IstioSystemNamespace, controlPlane, clone(controlPlaneLabels), []rbacv1.PolicyRule{
		parts.Rule("networking.istio.io", []string{"gateways"}, "create"),
		parts.Rule("", []string{"secrets"}, "create", "get", "list", "watch", "update", "delete"),
		parts.Rule("", []string{"configmaps"}, "delete"),
		parts.Rule("coordination.k8s.io", []string{"leases"}, "get", "update", "patch", "create"),
	}, account)...), nil
}

// controlPlaneRules lets Istio read its configuration and the Services of gateways, and give its certificate authority to all
// namespaces. It cannot write Secrets outside of its namespace.
func controlPlaneRules() []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	istio := []string{"extensions.istio.io", "networking.istio.io", "security.istio.io", "telemetry.istio.io"}
	return []rbacv1.PolicyRule{
		parts.Rule("admissionregistration.k8s.io", []string{"validatingwebhookconfigurations"}, "get", "list", "watch", "update"),
		{APIGroups: istio, Resources: []string{"*"}, Verbs: read},
		parts.Rule("networking.istio.io", []string{"workloadentries", "workloadentries/status", "serviceentries/status"}, rbac.ForObjects()...),
		parts.Rule("apiextensions.k8s.io", []string{"customresourcedefinitions"}, read...),
		parts.Rule("", []string{"pods", "nodes", "services", "namespaces", "endpoints", "secrets"}, read...),
		parts.Rule("discovery.k8s.io", []string{"endpointslices"}, read...),
		parts.Rule("", []string{"configmaps"}, "create", "get", "list", "watch", "update"),
		parts.Rule("authentication.k8s.io", []string{"tokenreviews"}, "create"),
		parts.Rule("authorization.k8s.io", []string{"subjectaccessreviews"}, "create"),
	}
}

func controlPlaneDeployment(values ControlPlaneValues) (*appsv1.Deployment, error) {
	deployment, err := parts.Workload{
		Namespace: constants.IstioSystemNamespace, Name: controlPlane, Selector: clone(controlPlaneLabels), Replicas: values.Replicas,
		Labels: map[string]string{highavailability.LabelType: parts.TypeServer}, PodLabels: map[string]string{
			constants.LabelNetworkPolicyToDNS: constants.NetworkPolicyAllowed, constants.LabelNetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
		},
		PriorityClass: constants.PriorityClassSystemCritical, ServiceAccount: controlPlane, MountsToken: true,
		Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: ptr.To(intstr.FromString("100%")), MaxUnavailable: ptr.To(intstr.FromString("25%")),
		}},
		Container: corev1.Container{
			Name: "discovery", Image: values.Image, Args: []string{
				"discovery", "--monitoringAddr=:15014", "--httpsAddr=:10250", "--grpcAddr=", "--log_output_level=default:info,ads:error",
				"--domain", "cluster.local", "--keepaliveMaxServerConnectionAge", "30m",
			},
			Ports: []corev1.ContainerPort{{ContainerPort: portReady}, {ContainerPort: portWebhook}, {ContainerPort: portXDS}, {ContainerPort: portMetrics}},
			Env: append(variables(map[string]string{
				"CLUSTER_ID": "Kubernetes", "EXTERNAL_ISTIOD": "false", "INJECTION_WEBHOOK_CONFIG_NAME": "", "ISTIOD_ADDR": "istiod.istio-system.svc:15012",
				"JWT_POLICY": "third-party-jwt", "KUBECONFIG": "/var/run/secrets/remote/config", "PILOT_CERT_PROVIDER": "istiod",
				"PILOT_ENABLE_ANALYSIS": "false", "REVISION": "default", "VALIDATION_WEBHOOK_CONFIG_NAME": controlPlane,
			}), field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace"), field("SERVICE_ACCOUNT", "spec.serviceAccountName")),
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(portReady)}},
				InitialDelaySeconds: 1, PeriodSeconds: 3, TimeoutSeconds: 5,
			},
			Resources: corev1.ResourceRequirements{Requests: parts.Requests("250m", "128Mi")},
			VolumeMounts: []corev1.VolumeMount{
				parts.Mount("config", "/etc/istio/config"), parts.Mount("token", "/var/run/secrets/tokens"),
				{Name: "certificates", MountPath: "/var/run/secrets/istio-dns"},
			},
		},
		Volumes: []corev1.Volume{
			{Name: "certificates", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
			token("token"), parts.ConfigVolume("config", configMap),
		},
	}.Deployment()
	if err != nil {
		return nil, err
	}
	setUser(deployment)
	return deployment, nil
}

// token returns a volume with a token for Istio's certificate authority.
func token(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
		ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "istio-ca", ExpirationSeconds: ptr.To[int64](43200), Path: "istio-token"},
	}}}}}
}

// setUser sets the user of Istio's images.
func setUser(deployment *appsv1.Deployment) {
	security := deployment.Spec.Template.Spec.SecurityContext
	security.RunAsUser, security.RunAsGroup, security.FSGroup = ptr.To[int64](1337), ptr.To[int64](1337), ptr.To[int64](1337)
}

func controlPlaneService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: constants.IstioSystemNamespace, Name: controlPlane, Labels: clone(controlPlaneLabels), Annotations: map[string]string{
				netpol.AnnotationFromWorld: parts.PortsAllowed(portWebhook), // API servers are not Pods
				netpol.AnnotationNamespaceSelectors: `[{"matchLabels":{"gardener.cloud/role":"istio-ingress"}},` +
					`{"matchExpressions":[{"key":"handler.exposureclass.gardener.cloud/name","operator":"Exists"}]},` +
					`{"matchLabels":{"kubernetes.io/metadata.name":"virtual-garden-istio-ingress"}}]`,
				netpol.AliasAnnotation(constants.NetworkPolicyAllSeedScrapeTargets): parts.PortsAllowed(portMetrics),
			},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: clone(controlPlaneLabels), Ports: []corev1.ServicePort{
				parts.TCPPort("https-dns", portXDS, portXDS), parts.TCPPort("https-webhook", 443, portWebhook), parts.TCPPort("metrics", portMetrics, portMetrics),
			},
		},
	}
}

// webhook validates the configuration of Istio. Istio itself writes its CA bundle.
func webhook() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: controlPlane, Labels: clone(controlPlaneLabels)},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validation.istio.io", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds: ptr.To[int32](10), MatchPolicy: ptr.To(admissionregistrationv1.Exact),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
				Namespace: constants.IstioSystemNamespace, Name: controlPlane, Path: ptr.To("/validate"), Port: ptr.To[int32](443),
			}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups:   []string{"security.istio.io", "networking.istio.io", "telemetry.istio.io", "extensions.istio.io"},
					APIVersions: []string{"*"}, Resources: []string{"*"},
				},
			}},
		}},
	}
}

// Autoscaler returns the HorizontalPodAutoscaler of a Deployment by its CPU: 80 percent of the requests, or a quantity.
func Autoscaler(deployment *appsv1.Deployment, least, most int32, cpu string) *autoscalingv2.HorizontalPodAutoscaler {
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](80)}
	behavior := &autoscalingv2.HorizontalPodAutoscalerBehavior{}
	if cpu != "80" {
		average := parts.Requests(cpu, "0")[corev1.ResourceCPU]
		target = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &average}
		rules := func(period int32) *autoscalingv2.HPAScalingRules {
			return &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &period, Policies: []autoscalingv2.HPAScalingPolicy{
				{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: period},
			}}
		}
		behavior.ScaleUp, behavior.ScaleDown = rules(60), rules(1800)
	} else {
		behavior = nil
	}
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name, Labels: clone(deployment.Spec.Selector.MatchLabels)},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment.Name},
			MinReplicas:    &least, MaxReplicas: most, Behavior: behavior,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: target},
			}},
		},
	}
}

func sortedKeys(of map[string]string) []string { return slices.Sorted(maps.Keys(of)) }
