// Package kubecontrollermanager contains the kube-controller-manager of a shoot. Without workers, it runs the controllers of Kubernetes that need no
// nodes. Names, labels, ports and flags are the same as in Gardener.
package kubecontrollermanager

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// Image is the name of the image.
const Image = "kube-controller-manager"

// Name is the name of the Deployment, the Service and the ServiceAccount in the shoot.
const Name = "kube-controller-manager"

// SecretServer is the name of the config of the server's certificate.
const SecretServer = "kube-controller-manager-server"

const port = 10257

// signingDuration is how long certificates are valid in a shoot.
const signingDuration = "720h"

// Mount paths of certificates and keys.
const (
	pathCA                = "/srv/kubernetes/ca"
	pathClientCA          = "/srv/kubernetes/ca-client"
	pathServiceAccountKey = "/srv/kubernetes/service-account-key"
	pathServer            = "/var/lib/kube-controller-manager-server"
	pathKubeletCA         = "/srv/kubernetes/ca-kubelet"
)

// Mounted are the names of the Secrets that the Pods mount.
type Mounted struct {
	// CA is the bundle of the cluster CA, ClientCA the CA that signs client certificates.
	CA, ClientCA string
	// KubeletCA is the CA that signs the certificates of kubelets' servers; empty for a shoot without workers.
	KubeletCA string
	// ServiceAccountKey is the signing key of tokens.
	ServiceAccountKey string
	// Server is the certificate of the config SecretServer, Kubeconfig the Secret of the config generic-token-kubeconfig.
	Server, Kubeconfig string
}

// Values are the inputs of the component.
type Values struct {
	// Namespace of the control plane.
	Namespace string
	// NamePrefix is the prefix of the names of all objects in the cluster that runs it; empty for a shoot.
	NamePrefix string
	// PriorityClass of the Pods; empty for that of control planes of shoots.
	PriorityClass string
	// Disabled are the names of controllers that do not run, in addition to those that the cluster does not need.
	Disabled []string
	// ClusterName is the name of the cluster in the flags; empty for the namespace.
	ClusterName string
	// SigningDuration is how long certificates are valid that it signs; 0 for 30 days.
	SigningDuration time.Duration
	// Image is the reference of the image named by the constant Image.
	Image string
	// Config is spec.kubernetes.kubeControllerManager of the Shoot, with defaults.
	Config corev1beta1.KubeControllerManagerConfig
	// RuntimeConfig lists the APIs that are enabled or disabled in the API server.
	RuntimeConfig map[string]bool
	// Replicas is 0 while the shoot is hibernated.
	Replicas int32
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The seed must define the kind.
	VerticalPodAutoscaler bool
	// ServiceNetworks are the Service ranges in CIDR notation.
	ServiceNetworks []string
	// PodNetworks are the ranges of Pods in CIDR notation; empty for a shoot without workers.
	PodNetworks []string
	Mounted     Mounted
}

// name returns the name of the Deployment and the Service.
func (v Values) name() string { return v.NamePrefix + Name }

// selector selects the Pods.
var selector = parts.ControlPlane("controller-manager")

// needNodes are the controllers that are useless without nodes.
var needNodes = []string{
	"device-taint-eviction-controller", "endpoints-controller", "ephemeral-volume-controller", "horizontal-pod-autoscaler-controller",
	"node-ipam-controller", "node-lifecycle-controller",
	"persistentvolume-attach-detach-controller", "persistentvolume-binder-controller", "persistentvolume-expander-controller",
	"persistentvolume-protection-controller", "ttl-controller",
}

// ofAPI are the controllers of APIs that can be disabled.
var ofAPI = map[string][]string{
	"apps/v1":                        {"daemonset-controller", "deployment-controller", "replicaset-controller", "statefulset-controller"},
	"batch/v1":                       {"cronjob-controller", "job-controller", "ttl-after-finished-controller"},
	"policy/v1/poddisruptionbudgets": {"disruption-controller"},
}

// Secrets returns the configs of the certificates of the component.
func Secrets(values Values) []secrets.Config {
	return []secrets.Config{{
		Name: SecretServer, Kind: secrets.KindServer, CommonName: Name,
		DNSNames: parts.ServiceNames(values.Namespace, values.name()), SignedBy: constants.SecretNameCACluster,
	}}
}

// AccessSecret returns the Secret with the token of the component. It must exist before the Deployment that mounts it.
func AccessSecret(namespace string) *corev1.Secret { return parts.AccessSecret(namespace, Name) }

// Objects returns the objects in the seed.
func Objects(values Values) ([]client.Object, error) {
	deployment, err := deployment(values)
	if err != nil {
		return nil, err
	}
	objects := []client.Object{service(values), deployment, parts.Budget(deployment)}
	if values.VerticalPodAutoscaler {
		objects = append(objects, parts.NewAutoscaler(values.Namespace, values.name()+"-vpa", values.name(),
			map[string]any{"containerName": Name, "controlledValues": "RequestsOnly"}, map[string]any{"containerName": "*", "mode": "Off"}))
	}
	return objects, nil
}

// ShootObjects returns the objects in the shoot: the permissions of the component itself. Its controllers have their
// own ServiceAccounts.
func ShootObjects() []client.Object {
	subject := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: Name}}
	return []client.Object{
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:target:kube-controller-manager"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:kube-controller-manager"}, Subjects: subject,
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:target:kube-controller-manager:auth-delegator"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"}, Subjects: subject,
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "gardener.cloud:target:kube-controller-manager:auth-reader"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"}, Subjects: subject,
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "gardener.cloud:target:kube-controller-manager:leader-election"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "system::leader-locking-kube-controller-manager"},
			Subjects:   subject,
		},
	}
}

func service(values Values) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: values.Namespace, Name: values.name(), Labels: selector,
			Annotations: map[string]string{
				netpol.AliasAnnotation(constants.NetworkPolicyAllScrapeTargets): parts.PortsAllowed(port),
			},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone, Selector: selector,
			Ports: []corev1.ServicePort{{Name: "metrics", Port: port, TargetPort: intstr.FromInt32(port), Protocol: corev1.ProtocolTCP}},
		},
	}
}

func deployment(values Values) (*appsv1.Deployment, error) {
	access, mount := parts.ShootAccess(values.Mounted.Kubeconfig, parts.AccessSecretName(Name))
	volumes, mounts := []corev1.Volume{access}, []corev1.VolumeMount{mount}
	for _, each := range []struct{ name, secret, path string }{
		{"ca", values.Mounted.CA, pathCA},
		{"ca-client", values.Mounted.ClientCA, pathClientCA},
		{"service-account-key", values.Mounted.ServiceAccountKey, pathServiceAccountKey},
		{"server", values.Mounted.Server, pathServer},
		{"ca-kubelet", values.Mounted.KubeletCA, pathKubeletCA},
	} {
		if each.secret != "" {
			volumes, mounts = append(volumes, parts.SecretVolume(each.name, each.secret)), append(mounts, parts.Mount(each.name, each.path))
		}
	}
	return parts.Workload{
		Namespace: values.Namespace, Name: values.name(), Selector: selector,
		Labels: map[string]string{
			constants.LabelGardenRole: constants.RoleControlPlane, highavailability.LabelType: parts.TypeController,
			constants.LabelMutatedByControlPlaneWebhook: "true",
		},
		PodLabels: map[string]string{
			constants.LabelGardenRole:                                         constants.RoleControlPlane,
			constants.LabelMaintenanceRestart:                                 "true",
			constants.LabelNetworkPolicyToDNS:                                 constants.NetworkPolicyAllowed,
			netpol.LabelPrefix + values.NamePrefix + "kube-apiserver-tcp-443": netpol.LabelValue,
		},
		Replicas: values.Replicas, PriorityClass: cmp.Or(values.PriorityClass, constants.PriorityClassSystem300), Volumes: volumes,
		Container: corev1.Container{
			Name: Name, Image: values.Image, Command: append([]string{parts.Program(Name)}, flags(values)...),
			Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			LivenessProbe: &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
					Path: "/healthz", Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTPS,
				}},
				InitialDelaySeconds: 15, PeriodSeconds: 10, TimeoutSeconds: 15, FailureThreshold: 2, SuccessThreshold: 1,
			},
			Resources: corev1.ResourceRequirements{Requests: parts.Requests("100m", "128Mi")}, VolumeMounts: mounts,
		},
	}.Deployment()
}

// controllers returns the enabled controllers: all except those of disabled APIs and, without workers, those that need nodes.
func controllers(runtimeConfig map[string]bool, nodes bool, disabled ...string) string {
	off := slices.Clone(disabled)
	if !nodes {
		off = append(off, needNodes...)
	}
	for api, names := range ofAPI {
		if enabled, known := runtimeConfig[api]; known && !enabled {
			off = append(off, names...)
		}
	}
	slices.Sort(off)
	list := []string{"*", "bootstrap-signer-controller", "token-cleaner-controller"}
	for _, name := range off {
		list = append(list, "-"+name)
	}
	return strings.Join(list, ",")
}

func flags(values Values) []string {
	kubeconfig, signing := parts.ShootKubeconfig, signingDuration
	if values.SigningDuration > 0 {
		signing = values.SigningDuration.String()
	}
	certificate, key := pathClientCA+"/"+secrets.KeyCACert, pathClientCA+"/"+secrets.KeyCAKey
	all := []string{
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig, "--kubeconfig=" + kubeconfig,
		"--kube-api-qps=100", "--kube-api-burst=200", "--cluster-name=" + cmp.Or(values.ClusterName, values.Namespace),
		"--cluster-signing-kube-apiserver-client-cert-file=" + certificate, "--cluster-signing-kube-apiserver-client-key-file=" + key,
		"--cluster-signing-legacy-unknown-cert-file=" + certificate, "--cluster-signing-legacy-unknown-key-file=" + key,
		"--cluster-signing-duration=" + signing, "--root-ca-file=" + pathCA + "/" + secrets.KeyBundleCert,
		"--service-account-private-key-file=" + pathServiceAccountKey + "/" + secrets.KeyRSA,
		"--use-service-account-credentials=true", "--service-cluster-ip-range=" + strings.Join(values.ServiceNetworks, ","),
		"--secure-port=10257", "--tls-cert-file=" + pathServer + "/tls.crt", "--tls-private-key-file=" + pathServer + "/tls.key",
		"--profiling=false", "--leader-elect=true",
		"--concurrent-endpoint-syncs=15", "--concurrent-service-endpoint-syncs=15", "--concurrent-gc-syncs=30", "--concurrent-namespace-syncs=30",
		"--concurrent-resource-quota-syncs=15", "--concurrent-serviceaccount-token-syncs=15",
		"--controllers=" + controllers(values.RuntimeConfig, values.hasNodes(), values.Disabled...),
	}
	all = append(all, nodeFlags(values)...)
	if len(values.Config.FeatureGates) > 0 {
		all = append(all, "--feature-gates="+parts.Switches(values.Config.FeatureGates))
	}
	return append(all, "--v=2")
}
