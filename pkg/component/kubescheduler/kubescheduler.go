// Package kubescheduler contains the scheduler of a shoot with workers. Names, labels, ports and flags are the same as
// in Gardener.
package kubescheduler

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// Image is the name of the image.
const Image = "kube-scheduler"

// Name is the name of the Deployment, the Service and the ServiceAccount in the shoot.
const Name = "kube-scheduler"

// SecretServer is the name of the config of the server's certificate.
const SecretServer = "kube-scheduler-server" //nolint:gosec // the name of a Secret

// BinPacking is the name of the additional scheduler of the profile bin-packing, which fills nodes one after the other.
const BinPacking = "bin-packing-scheduler"

const port = 10259

// Mount paths of files.
const (
	pathClientCA = "/srv/kubernetes/ca-client"
	pathServer   = "/var/lib/kube-scheduler-server"
	pathConfig   = "/var/lib/kube-scheduler-config"
	fileConfig   = "config.yaml"
)

// Mounted are the names of the Secrets that the Pods mount.
type Mounted struct {
	// ClientCA is the bundle of the CAs that sign client certificates.
	ClientCA string
	// Server is the certificate of the config SecretServer, Kubeconfig the Secret of the config generic-token-kubeconfig.
	Server, Kubeconfig string
}

// Values are the inputs of the component.
type Values struct {
	// Namespace of the control plane.
	Namespace string
	// Image is the reference of the image named by the constant Image.
	Image string
	// Config is spec.kubernetes.kubeScheduler of the Shoot, with defaults.
	Config corev1beta1.KubeSchedulerConfig
	// Replicas is 0 while the shoot is hibernated.
	Replicas int32
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The seed must define the kind.
	VerticalPodAutoscaler bool
	Mounted               Mounted
}

// selector selects the Pods.
var selector = parts.ControlPlane("scheduler")

// Secrets returns the configs of the certificates of the component.
func Secrets(values Values) []secrets.Config {
	return []secrets.Config{{
		Name: SecretServer, Kind: secrets.KindServer, CommonName: Name,
		DNSNames: parts.ServiceNames(values.Namespace, Name), SignedBy: constants.SecretNameCACluster,
	}}
}

// AccessSecret returns the Secret with the token of the component. It must exist before the Deployment that mounts it.
func AccessSecret(namespace string) *corev1.Secret { return parts.AccessSecret(namespace, Name) }

// Objects returns the objects in the seed.
func Objects(values Values) ([]client.Object, error) {
	file, err := configuration(values.Config)
	if err != nil {
		return nil, err
	}
	config, err := parts.Configuration(values.Namespace, "kube-scheduler-config", selector, fileConfig, file)
	if err != nil {
		return nil, err
	}
	deployment, err := deployment(values, config.Name)
	if err != nil {
		return nil, err
	}
	objects := []client.Object{service(values.Namespace), config, deployment, parts.Budget(deployment)}
	if values.VerticalPodAutoscaler {
		objects = append(objects, parts.NewAutoscaler(values.Namespace, Name+"-vpa", Name,
			map[string]any{"containerName": Name, "controlledValues": "RequestsOnly"}, map[string]any{"containerName": "*", "mode": "Off"}))
	}
	return objects, nil
}

// ShootObjects returns the objects in the shoot: the permissions of the component.
func ShootObjects() []client.Object {
	var objects []client.Object
	for _, role := range []string{"kube-scheduler", "volume-scheduler"} {
		objects = append(objects, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:target:" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:" + role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: Name}},
		})
	}
	return objects
}

// configuration returns the KubeSchedulerConfiguration. Without profiles, Kubernetes has only the default scheduler,
// which spreads Pods over nodes. With the profile bin-packing, a second scheduler fills one node after the other for
// Pods that name it.
func configuration(config corev1beta1.KubeSchedulerConfig) (string, error) {
	file := map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"clientConnection": map[string]any{"kubeconfig": parts.ShootKubeconfig},
		"leaderElection":   map[string]any{"leaderElect": true},
	}
	if ptr.Deref(config.Profile, corev1beta1.SchedulingProfileBalanced) == corev1beta1.SchedulingProfileBinPacking {
		file["profiles"] = []any{
			map[string]any{"schedulerName": corev1.DefaultSchedulerName},
			map[string]any{
				"schedulerName": BinPacking,
				"pluginConfig": []any{map[string]any{
					"name": "NodeResourcesFit", "args": map[string]any{"scoringStrategy": map[string]any{"type": "MostAllocated"}},
				}},
				// This plugin prefers evenly used nodes, which conflicts with MostAllocated.
				"plugins": map[string]any{"score": map[string]any{"disabled": []any{map[string]any{"name": "NodeResourcesBalancedAllocation"}}}},
			},
		}
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		return "", fmt.Errorf("encode the configuration of kube-scheduler: %w", err)
	}
	return string(text), nil
}

func service(namespace string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: Name, Labels: selector,
			Annotations: map[string]string{
				netpol.AliasAnnotation(constants.NetworkPolicyAllScrapeTargets): parts.PortsAllowed(port),
			},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: selector,
			Ports: []corev1.ServicePort{{Name: "metrics", Port: port, TargetPort: intstr.FromInt32(port), Protocol: corev1.ProtocolTCP}},
		},
	}
}

func deployment(values Values, config string) (*appsv1.Deployment, error) {
	access, mount := parts.ShootAccess(values.Mounted.Kubeconfig, parts.AccessSecretName(Name))
	return parts.Workload{
		Namespace: values.Namespace, Name: Name, Selector: selector,
		Labels: map[string]string{
			constants.LabelGardenRole: constants.RoleControlPlane, highavailability.LabelType: parts.TypeController,
			constants.LabelMutatedByControlPlaneWebhook: "true",
		},
		PodLabels: map[string]string{
			constants.LabelGardenRole:                     constants.RoleControlPlane,
			constants.LabelMaintenanceRestart:             "true",
			constants.LabelNetworkPolicyToDNS:             constants.NetworkPolicyAllowed,
			netpol.LabelPrefix + "kube-apiserver-tcp-443": netpol.LabelValue,
		},
		Replicas: values.Replicas, PriorityClass: constants.PriorityClassSystem300,
		Volumes: []corev1.Volume{
			access, parts.SecretVolume("ca-client", values.Mounted.ClientCA), parts.SecretVolume("server", values.Mounted.Server),
			parts.ConfigVolume("config", config),
		},
		Container: corev1.Container{
			Name: Name, Image: values.Image, Command: append([]string{parts.Program(Name)}, flags(values)...),
			Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			LivenessProbe: &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
					Path: "/healthz", Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTPS,
				}},
				InitialDelaySeconds: 15, PeriodSeconds: 10, TimeoutSeconds: 15, FailureThreshold: 2, SuccessThreshold: 1,
			},
			Resources: corev1.ResourceRequirements{Requests: parts.Requests("10m", "64Mi")},
			VolumeMounts: []corev1.VolumeMount{
				mount, parts.Mount("ca-client", pathClientCA), parts.Mount("server", pathServer), parts.Mount("config", pathConfig),
			},
		},
	}.Deployment()
}

func flags(values Values) []string {
	all := []string{
		"--config=" + pathConfig + "/" + fileConfig,
		"--authentication-kubeconfig=" + parts.ShootKubeconfig, "--authorization-kubeconfig=" + parts.ShootKubeconfig,
		"--client-ca-file=" + pathClientCA + "/" + secrets.KeyBundleCert,
		"--tls-cert-file=" + pathServer + "/tls.crt", "--tls-private-key-file=" + pathServer + "/tls.key", "--secure-port=10259",
	}
	if len(values.Config.FeatureGates) > 0 {
		all = append(all, "--feature-gates="+parts.Switches(values.Config.FeatureGates))
	}
	return append(all, "--v=2")
}
