package resourcemanager

import (
	"cmp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/rbac"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// Account is the ServiceAccount of a shoot's resource-manager in the namespace kube-system of the shoot.
const Account = Name

// clusterRoleBinding is the name of the binding that makes it a cluster admin there.
const clusterRoleBinding = "gardener.cloud:target:resource-manager"

// tokenRequestWorkers is the number of concurrent token requests.
const tokenRequestWorkers = 5

// tokenValidity is the validity of the resource-manager's own token. It renews the token itself, so it must not be
// stopped for longer.
const tokenValidity = 24 * time.Hour

// ShootValues are the inputs of a shoot's resource-manager, which runs in the namespace of the control plane.
type ShootValues struct {
	// Namespace of the control plane.
	Namespace string
	// NamePrefix is the prefix of the names of all objects in the cluster that runs it; empty for a shoot.
	NamePrefix string
	// PriorityClass of the Pods; empty for that of control planes of shoots.
	PriorityClass string
	// TargetNamespaces are the namespaces in which it works in addition to kube-system and kube-node-lease.
	TargetNamespaces []string
	// Image is the reference of the image named by the constant Image.
	Image string
	// Replicas is 0 while the shoot is hibernated.
	Replicas int32
	// ClusterID is the identity of the seed. It distinguishes ManagedResources of the same name.
	ClusterID string
	// LogLevel and LogFormat are the settings of gardenlet.
	LogLevel, LogFormat string
	// Kubeconfig is the Secret of the config generic-token-kubeconfig.
	Kubeconfig string
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The seed must define the kind.
	VerticalPodAutoscaler bool
	// Nodes are the settings of a shoot with workers, nil without.
	Nodes *NodeSettings
}

// name returns the name of the Deployment and of the objects that it uses.
func (v ShootValues) name() string { return v.NamePrefix + Name }

// selector returns the labels that select the Pods.
func (v ShootValues) selector() map[string]string { return map[string]string{"app": v.name()} }

// shootConfiguration returns the configuration of the resource-manager of a shoot: it applies manifests, collects garbage and requests
// tokens. Only that of a shoot with workers has webhooks and controllers for Pods and nodes.
func shootConfiguration(values ShootValues) *configv1alpha1.ResourceManagerConfiguration {
	config := &configv1alpha1.ResourceManagerConfiguration{LogLevel: values.LogLevel, LogFormat: values.LogFormat}
	config.SourceClientConnection.Namespaces = []string{values.Namespace}
	config.TargetClientConnection = &configv1alpha1.ClientConnection{Namespaces: append([]string{metav1.NamespaceSystem, "kube-node-lease"}, values.TargetNamespaces...)}
	config.TargetClientConnection.Kubeconfig = parts.ShootKubeconfig
	config.LeaderElection.ResourceNamespace = values.Namespace
	if values.NamePrefix != "" {
		config.LeaderElection.ResourceName = values.name() // the namespace may have another resource-manager
	}
	config.Server.HealthProbes = &configv1alpha1.Server{Port: portHealth}
	config.Server.Metrics = &configv1alpha1.Server{Port: portMetrics}

	controllers := &config.Controllers
	controllers.ClusterID = ptr.To(values.ClusterID)
	controllers.GarbageCollector.Enabled, controllers.GarbageCollector.SyncPeriod = true, period(collectPeriod)
	controllers.ManagedResource.ConcurrentSyncs, controllers.ManagedResource.SyncPeriod = ptr.To(workers), period(applyPeriod)
	controllers.Health.ConcurrentSyncs, controllers.Health.SyncPeriod = ptr.To(workers), period(healthPeriod)
	controllers.TokenRequestor.Enabled, controllers.TokenRequestor.ConcurrentSyncs = true, ptr.To(tokenRequestWorkers)
	if values.Nodes != nil {
		configureNodes(config, values.Namespace, *values.Nodes)
	}
	configv1alpha1.SetDefaults(config)
	return config
}

// ShootAccessSecret returns the Secret with the token of the shoot's resource-manager. gardenlet issues the first
// token: see [ShootRights].
func ShootAccessSecret(namespace string) *corev1.Secret {
	secret := parts.AccessSecret(namespace, Account)
	secret.Annotations[resourcesv1alpha1.AnnotationTokenExpirationDuration] = tokenValidity.String()
	return secret
}

// ShootRights returns the prerequisites of the resource-manager in the shoot: its ServiceAccount and its cluster-admin
// binding. They must be kept when their ManagedResource is deleted, because the resource-manager still has to delete
// others.
func ShootRights() []client.Object {
	return []client.Object{
		&corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: Account}, AutomountServiceAccountToken: ptr.To(false),
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: clusterRoleBinding},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: Account}},
		},
	}
}

// ShootObjects returns the objects of the shoot's resource-manager in the seed. It returns an error if the
// configuration is invalid.
func ShootObjects(values ShootValues) ([]client.Object, error) {
	config := shootConfiguration(values)
	text, err := configurationText(config)
	if err != nil {
		return nil, err
	}
	needed, err := rbac.For(config)
	if err != nil {
		return nil, err
	}
	name, labels := values.name(), parts.Merge(values.selector(), map[string]string{constants.LabelGardenRole: constants.RoleControlPlane})
	configMap, err := parts.Configuration(values.Namespace, name, labels, configFile, text)
	if err != nil {
		return nil, err
	}
	deployment, err := shootDeployment(values, labels, configMap.Name)
	if err != nil {
		return nil, err
	}
	account := parts.Account{Namespace: values.Namespace, Name: name}
	objects := []client.Object{
		parts.ServiceAccount(values.Namespace, name, labels), configMap, shootService(values, labels), deployment, parts.Budget(deployment),
	}
	objects = append(objects, parts.Rights(values.Namespace, name, labels, needed.Source.Namespaced[values.Namespace], account)...)
	if values.VerticalPodAutoscaler {
		objects = append(objects, parts.Autoscaler(deployment, "30Mi"))
	}
	return objects, nil
}

func shootDeployment(values ShootValues, labels map[string]string, configMap string) (*appsv1.Deployment, error) {
	const config, health = "config", "health"
	access, mounted := parts.ShootAccess(values.Kubeconfig, parts.AccessSecretName(Account))
	container := corev1.Container{
		Name: Name, Image: values.Image, Args: []string{"--config=" + configPath + "/" + configFile},
		Ports: []corev1.ContainerPort{
			{Name: "metrics", ContainerPort: portMetrics, Protocol: corev1.ProtocolTCP},
			{Name: health, ContainerPort: portHealth, Protocol: corev1.ProtocolTCP},
		},
		LivenessProbe: parts.Probe("/healthz", health), ReadinessProbe: parts.Probe("/readyz", health),
		Resources:    corev1.ResourceRequirements{Requests: parts.Requests("20m", "64Mi")},
		VolumeMounts: []corev1.VolumeMount{parts.Mount(config, configPath), mounted},
	}
	container.StartupProbe, container.LivenessProbe.FailureThreshold = parts.Startup(container.ReadinessProbe), 5
	volumes := []corev1.Volume{parts.ConfigVolume(config, configMap), access}
	if values.Nodes != nil {
		volumes = append(volumes, serveWebhooks(&container, values.Nodes.ServerCertificate))
	}
	return parts.Workload{
		Namespace: values.Namespace, Name: values.name(), Selector: values.selector(),
		Labels: parts.Merge(labels, map[string]string{highavailability.LabelType: parts.TypeServer}),
		PodLabels: parts.Merge(labels, map[string]string{
			constants.LabelNetworkPolicyToDNS:                                 constants.NetworkPolicyAllowed,
			constants.LabelNetworkPolicyToRuntimeAPIServer:                    constants.NetworkPolicyAllowed,
			netpol.LabelPrefix + values.NamePrefix + "kube-apiserver-tcp-443": netpol.LabelValue,
		}),
		Replicas: values.Replicas, PriorityClass: cmp.Or(values.PriorityClass, constants.PriorityClassSystem400), ServiceAccount: values.name(), MountsToken: true,
		Container: container, Volumes: volumes,
	}.Deployment()
}
