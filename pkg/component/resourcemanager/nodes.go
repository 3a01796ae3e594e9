package resourcemanager

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/webhooks"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// approverWorkers is the number of certificate requests that are decided concurrently.
const approverWorkers = 5

// namespaceDashboard is the namespace of the dashboard in a shoot, whose Pods are system components, too.
const namespaceDashboard = "kubernetes-dashboard"

// NodeSettings are the settings of the resource-manager of a shoot with workers. It approves the certificates of kubelets and node
// agents, authorizes node agents, observes nodes, and changes system components by webhooks.
type NodeSettings struct {
	// ServerCertificate is the Secret of the config SecretServer.
	ServerCertificate string
	// Host is the host name of the API server for Pods, empty if they have none of their own and use the Service kubernetes.
	Host string
	// Tolerations are the tolerations of system components: see SystemTolerations.
	Tolerations []corev1.Toleration
	// MaxDelay is the time over which nodes spread the application of a new configuration.
	MaxDelay time.Duration
	// Scheduler is the scheduler of Pods that name none; empty for the default.
	Scheduler string
	// NodeToleration contains gardenlet's default tolerations of Pods for nodes that are not ready or unreachable; nil for none.
	NodeToleration *gardenletv1alpha1.NodeToleration
	// WithSelectors is set if the API server sends the selectors of lists and watches to authorizers.
	WithSelectors bool
	// WithoutTemplateKeys is set if the API server does not compute topology spread constraints for each template of a Deployment, so that
	// a webhook must do it.
	WithoutTemplateKeys bool
}

// ShootSecrets returns the configs of the certificates that only the resource-manager of a shoot with workers needs.
func ShootSecrets(namespace string) []secrets.Config {
	return Secrets(Values{Namespace: namespace}, constants.SecretNameCACluster)
}

// SystemTolerations returns the tolerations of the taints of all pools whose nodes may run system components, sorted by key.
func SystemTolerations(workers []corev1beta1.Worker) []corev1.Toleration {
	var tolerations []corev1.Toleration
	for _, worker := range workers {
		if worker.SystemComponents != nil && !worker.SystemComponents.Allow {
			continue
		}
		for _, taint := range worker.Taints {
			toleration := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists, Value: taint.Value, Effect: taint.Effect}
			if taint.Value != "" {
				toleration.Operator = corev1.TolerationOpEqual
			}
			if !slices.Contains(tolerations, toleration) {
				tolerations = append(tolerations, toleration)
			}
		}
	}
	slices.SortFunc(tolerations, func(a, b corev1.Toleration) int {
		return strings.Compare(a.Key+" "+a.Value+" "+string(a.Effect), b.Key+" "+b.Value+" "+string(b.Effect))
	})
	return tolerations
}

// configureNodes adds what a shoot with workers needs to the configuration.
func configureNodes(config *configv1alpha1.ResourceManagerConfiguration, namespace string, settings NodeSettings) {
	config.TargetClientConnection.Namespaces = append(config.TargetClientConnection.Namespaces, namespaceDashboard)
	config.Server.Webhooks.Port, config.Server.Webhooks.TLS.ServerCertDir = portWebhooks, serverCertPath

	controllers := &config.Controllers
	controllers.CSRApprover.Enabled, controllers.CSRApprover.ConcurrentSyncs = true, ptr.To(approverWorkers)
	controllers.CSRApprover.MachineNamespace = ptr.To(namespace)
	controllers.NodeCriticalComponents.Enabled, controllers.NodeCriticalComponents.Namespaces = true, []string{metav1.NamespaceSystem}
	controllers.NodeAgentReconciliationDelay.Enabled, controllers.NodeAgentReconciliationDelay.FirstNode = true, true
	controllers.NodeAgentReconciliationDelay.MaxDelay = period(settings.MaxDelay)

	enabled := &config.Webhooks
	enabled.ProjectedTokenMount.Enabled = true
	enabled.HighAvailabilityConfig.Enabled = true
	if tolerations := settings.NodeToleration; tolerations != nil {
		enabled.HighAvailabilityConfig.DefaultNotReadyTolerationSeconds = tolerations.DefaultNotReadyTolerationSeconds
		enabled.HighAvailabilityConfig.DefaultUnreachableTolerationSeconds = tolerations.DefaultUnreachableTolerationSeconds
	}
	if settings.Scheduler != "" {
		enabled.PodSchedulerName.Enabled, enabled.PodSchedulerName.SchedulerName = true, ptr.To(settings.Scheduler)
	}
	enabled.KubernetesServiceHost.Enabled, enabled.KubernetesServiceHost.Host = settings.Host != "", settings.Host
	enabled.SystemComponentsConfig.Enabled = true
	enabled.SystemComponentsConfig.NodeSelector = map[string]string{constants.LabelWorkerPoolSystemComponents: "true"}
	enabled.SystemComponentsConfig.PodNodeSelector = map[string]string{constants.LabelWorkerPoolSystemComponents: "true"}
	enabled.SystemComponentsConfig.PodTolerations = settings.Tolerations
	enabled.PodTopologySpreadConstraints.Enabled = settings.WithoutTemplateKeys
	enabled.VPAInPlaceUpdates.Enabled = true
	enabled.NodeAgentAuthorizer.Enabled, enabled.NodeAgentAuthorizer.MachineNamespace = true, ptr.To(namespace)
	enabled.NodeAgentAuthorizer.AuthorizeWithSelectors = ptr.To(settings.WithSelectors)
}

// NodeRegistrations returns the webhook configurations in a shoot with workers. Its API server reaches the resource-manager by the name
// of the Service in the namespace of the control plane, and verifies it with a PEM bundle.
func NodeRegistrations(values ShootValues, bundle []byte) []client.Object {
	enabled := webhooks.Enabled(webhooks.Table(), &shootConfiguration(values).Webhooks)
	reach := webhookserver.AtURL("https://"+Name+"."+values.Namespace+":443", bundle)
	return []client.Object{webhooks.MutatingConfiguration(enabled, webhooks.Placement{Shoot: true}, reach)}
}

// serveWebhooks adds the port of the webhooks to the container, with their certificate. It returns the volume.
func serveWebhooks(container *corev1.Container, certificate string) corev1.Volume {
	const volume = "certificate"
	container.Ports = append(container.Ports, corev1.ContainerPort{Name: "webhooks", ContainerPort: portWebhooks, Protocol: corev1.ProtocolTCP})
	container.VolumeMounts = append(container.VolumeMounts, parts.Mount(volume, serverCertPath))
	return parts.SecretVolume(volume, certificate)
}

// shootService returns the Service. It has a port for webhooks if there are workers, which only API servers may use.
func shootService(values ShootValues, labels map[string]string) *corev1.Service {
	service := service(values.Namespace, labels)
	service.Name, service.Spec.Selector = values.name(), values.selector()
	service.Annotations = map[string]string{
		netpol.AliasAnnotation(constants.NetworkPolicyAllScrapeTargets): parts.PortsAllowed(portMetrics),
	}
	if values.Nodes == nil {
		service.Spec.Ports = service.Spec.Ports[:2] // it serves no webhooks
		return service
	}
	service.Annotations[netpol.AliasAnnotation(constants.NetworkPolicyAllWebhookTargets)] = parts.PortsAllowed(portWebhooks)
	return service
}
