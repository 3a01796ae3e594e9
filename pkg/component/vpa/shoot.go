package vpa

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/crds"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// ShootValues are the inputs for the Vertical Pod Autoscaler of a shoot. Its programs run in the control plane.
type ShootValues struct {
	// Namespace of the control plane.
	Namespace string
	// AdmissionControllerImage, RecommenderImage and UpdaterImage are the references of the images named by the constants.
	AdmissionControllerImage, RecommenderImage, UpdaterImage string
	// Config is spec.kubernetes.verticalPodAutoscaler of the Shoot, with defaults.
	Config corev1beta1.VerticalPodAutoscaler
	// ServerCertificate is the Secret of the config SecretServer, Kubeconfig that of the config generic-token-kubeconfig.
	ServerCertificate, Kubeconfig string
	// VerticalPodAutoscaler adds VerticalPodAutoscalers for the programs. The seed must define the kind.
	VerticalPodAutoscaler bool
}

// Programs are the names of the programs, which are also those of their accounts in the shoot.
func Programs() []string { return []string{admissionController, recommender, updater} }

// AccessSecrets returns the Secrets with the tokens of the programs of a shoot.
func AccessSecrets(namespace string) []client.Object {
	var objects []client.Object
	for _, name := range Programs() {
		objects = append(objects, parts.AccessSecret(namespace, name))
	}
	return objects
}

// ControlPlaneObjects returns the programs of the autoscaler of a shoot. It returns an error for a resource that cannot have a maximum.
func ControlPlaneObjects(values ShootValues) ([]client.Object, error) {
	limits, err := maxAllowed(values.Config.MaxAllowed)
	if err != nil {
		return nil, err
	}
	service := service(values.Namespace)
	service.Annotations = map[string]string{
		netpol.AliasAnnotation(constants.NetworkPolicyAllWebhookTargets): parts.PortsAllowed(portServer),
	}
	objects := []client.Object{service}
	for _, each := range []program{
		{
			name: admissionController, image: values.AdmissionControllerImage, port: 8944, typ: parts.TypeServer, args: shootAdmissionControllerArgs(),
			certificate: values.ServerCertificate, requests: parts.Requests("10m", "30Mi"),
		},
		{
			name: recommender, image: values.RecommenderImage, port: 8942, typ: parts.TypeController,
			args: append(shootRecommenderArgs(values.Config), limits...), requests: parts.Requests("10m", "40Mi"),
		},
		{
			name: updater, image: values.UpdaterImage, port: 8943, typ: parts.TypeController, args: shootUpdaterArgs(values.Config),
			requests: parts.Requests("10m", "30Mi"),
		},
	} {
		deployment, err := each.ofShoot(values)
		if err != nil {
			return nil, err
		}
		objects = append(objects, deployment, parts.Budget(deployment))
		if values.VerticalPodAutoscaler {
			objects = append(objects, parts.Autoscaler(deployment, ""))
		}
	}
	return objects, nil
}

// ofShoot returns the Deployment of a program in a control plane: it uses the API server of the shoot.
func (p program) ofShoot(values ShootValues) (*appsv1.Deployment, error) {
	access, mount := parts.ShootAccess(values.Kubeconfig, parts.AccessSecretName(p.name))
	container := corev1.Container{
		Name: strings.TrimPrefix(p.name, "vpa-"), Image: p.image,
		Args: slices.Concat(p.args, []string{"--kubeconfig=" + parts.ShootKubeconfig}, featureGates(values.Config.FeatureGates)),
		// The namespace of the Lease through which the updater monitors the admission controller.
		Env:           []corev1.EnvVar{{Name: "NAMESPACE", Value: metav1.NamespaceSystem}},
		Ports:         []corev1.ContainerPort{{Name: portMetrics, ContainerPort: p.port, Protocol: corev1.ProtocolTCP}},
		LivenessProbe: parts.Probe("/health-check", portMetrics), ReadinessProbe: parts.Probe("/health-check", portMetrics),
		Resources: corev1.ResourceRequirements{Requests: p.requests}, VolumeMounts: []corev1.VolumeMount{mount},
	}
	volumes := []corev1.Volume{access}
	if p.certificate != "" {
		container.Ports = append(container.Ports, corev1.ContainerPort{Name: "server", ContainerPort: portServer, Protocol: corev1.ProtocolTCP})
		container.VolumeMounts = append(container.VolumeMounts, parts.Mount("tls", tlsPath))
		volumes = append(volumes, parts.SecretVolume("tls", p.certificate))
	}
	selector := map[string]string{"app": p.name}
	return parts.Workload{
		Namespace: values.Namespace, Name: p.name, Selector: selector,
		Labels: map[string]string{constants.LabelGardenRole: constants.RoleControlPlane, highavailability.LabelType: p.typ},
		PodLabels: map[string]string{
			constants.LabelGardenRole:                     constants.RoleControlPlane,
			constants.LabelNetworkPolicyToDNS:             constants.NetworkPolicyAllowed,
			netpol.LabelPrefix + "kube-apiserver-tcp-443": netpol.LabelValue,
		},
		Replicas: 1, PriorityClass: constants.PriorityClassSystem200, Container: container, Volumes: volumes,
	}.Deployment()
}

// ShootObjects returns what the autoscaler needs in the shoot: its kinds, which are kept when it is switched off, the permissions of the
// programs, and the webhook. bundle verifies the certificate of the webhook, in PEM format.
func ShootObjects(namespace string, bundle []byte) ([]client.Object, error) {
	objects, err := crds.Objects(crds.Values{Groups: []crds.Group{crds.VerticalPodAutoscaler}})
	if err != nil {
		return nil, err
	}
	objects = append(objects, rights(rolePrefixShoot, metav1.NamespaceSystem)...)
	webhook := registration(webhookConfigurationShoot, admissionregistrationv1.WebhookClientConfig{
		URL: ptr.To(fmt.Sprintf("https://%s.%s:443", webhookService, namespace)), CABundle: bundle,
	})
	return append(objects, webhook), nil
}

// ratesInShoot limits the request rate of a program, sustained and in bursts.
var ratesInShoot = []string{"--kube-api-qps=200", "--kube-api-burst=250"}

func shootAdmissionControllerArgs() []string {
	return append([]string{
		"--v=2", "--stderrthreshold=info", "--tls-cert-file=" + tlsPath + "/tls.crt", "--tls-private-key=" + tlsPath + "/tls.key",
		"--address=:8944", fmt.Sprintf("--port=%d", portServer), "--register-webhook=false",
	}, ratesInShoot...)
}

func shootRecommenderArgs(config corev1beta1.VerticalPodAutoscaler) []string {
	settings := map[string]string{
		"recommendation-margin-fraction":               number(config.RecommendationMarginFraction),
		"recommender-interval":                         duration(config.RecommenderInterval),
		"target-cpu-percentile":                        number(config.TargetCPUPercentile),
		"recommendation-lower-bound-cpu-percentile":    number(config.RecommendationLowerBoundCPUPercentile),
		"recommendation-upper-bound-cpu-percentile":    number(config.RecommendationUpperBoundCPUPercentile),
		"target-memory-percentile":                     number(config.TargetMemoryPercentile),
		"recommendation-lower-bound-memory-percentile": number(config.RecommendationLowerBoundMemoryPercentile),
		"recommendation-upper-bound-memory-percentile": number(config.RecommendationUpperBoundMemoryPercentile),
		"cpu-histogram-decay-half-life":                duration(config.CPUHistogramDecayHalfLife),
		"memory-histogram-decay-half-life":             duration(config.MemoryHistogramDecayHalfLife),
		"memory-aggregation-interval":                  duration(config.MemoryAggregationInterval),
		"memory-aggregation-interval-count":            number(config.MemoryAggregationIntervalCount),
		"update-worker-count":                          number(config.RecommenderUpdateWorkerCount),
	}
	return slices.Concat([]string{
		"--v=3", "--stderrthreshold=info", "--address=:8942", "--pod-recommendation-min-cpu-millicores=10", "--pod-recommendation-min-memory-mb=10",
		"--memory-saver=true",
	}, set(settings), ratesInShoot, leaderElection(metav1.NamespaceSystem))
}

func shootUpdaterArgs(config corev1beta1.VerticalPodAutoscaler) []string {
	settings := map[string]string{
		"eviction-tolerance": number(config.EvictionTolerance), "eviction-rate-burst": number(config.EvictionRateBurst),
		"eviction-rate-limit":       number(config.EvictionRateLimit),
		"evict-after-oom-threshold": duration(config.EvictAfterOOMThreshold), "updater-interval": duration(config.UpdaterInterval),
	}
	return slices.Concat([]string{"--v=2", "--stderrthreshold=info", "--address=:8943", "--min-replicas=1"},
		set(settings), ratesInShoot, leaderElection(metav1.NamespaceSystem))
}

// set returns the flags that have a value, sorted.
func set(settings map[string]string) []string {
	var flags []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if settings[name] != "" {
			flags = append(flags, "--"+name+"="+settings[name])
		}
	}
	return flags
}

// number returns a number as the value of a flag, empty if it is not set.
func number[T int32 | int64 | float64](value *T) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(*value)
}

// duration returns a duration as the value of a flag, empty if it is not set.
func duration(value *metav1.Duration) string {
	if value == nil {
		return ""
	}
	return value.Duration.String()
}
