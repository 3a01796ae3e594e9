package kubeapiserver

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// Mount paths of certificates and keys.
const (
	pathCA                 = "/srv/kubernetes/ca"
	pathClientCA           = "/srv/kubernetes/ca-client"
	pathFrontProxyCA       = "/srv/kubernetes/ca-front-proxy"
	pathServer             = "/srv/kubernetes/apiserver"
	pathAggregator         = "/srv/kubernetes/aggregator"
	pathServiceAccountKey  = "/srv/kubernetes/service-account-key"
	pathServiceAccountKeys = "/srv/kubernetes/service-account-key-bundle"
	pathToken              = "/srv/kubernetes/token" //nolint:gosec // a path
	pathEtcdCA             = "/srv/kubernetes/etcd/ca"
	pathEtcdClient         = "/srv/kubernetes/etcd/client"
	pathKubeletCA          = "/srv/kubernetes/ca-kubelet"
	pathKubeletClient      = "/srv/kubernetes/apiserver-kubelet"
)

// readySeconds is how long a Pod must be ready before another one is stopped.
const readySeconds = 30

// startSeconds is the startup timeout of a Pod on a busy node.
const startSeconds = 300

// pathLive does not depend on etcd: a restart of the API server does not repair etcd. On an overloaded node, slow members of etcd had
// all API servers restarted together, whose starts then kept the node overloaded.
const pathLive = "/livez?exclude=etcd"

func deployment(values Values, files configured) (*appsv1.Deployment, error) {
	volumes, mounts := volumes(values, files)
	container := corev1.Container{
		Name: Name, Image: values.Image, Command: []string{parts.Program(Name)}, Args: flags(values),
		Ports:        []corev1.ContainerPort{{Name: "https", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		StartupProbe: startupProbe(values), LivenessProbe: probe(values, pathLive), ReadinessProbe: probe(values, "/readyz"),
		Resources:    corev1.ResourceRequirements{Requests: requests(values)},
		VolumeMounts: mounts,
	}
	deployment, err := parts.Workload{
		Namespace: values.Namespace, Name: values.name(), Selector: selector,
		Labels: map[string]string{
			constants.LabelGardenRole: constants.RoleControlPlane, highavailability.LabelType: parts.TypeServer,
			constants.LabelMutatedByControlPlaneWebhook: "true",
		},
		PodLabels: map[string]string{
			constants.LabelGardenRole:                                     constants.RoleControlPlane,
			constants.LabelNetworkPolicyToDNS:                             constants.NetworkPolicyAllowed,
			constants.LabelNetworkPolicyToPublicNetworks:                  constants.NetworkPolicyAllowed,
			constants.LabelNetworkPolicyToPrivateNetworks:                 constants.NetworkPolicyAllowed,
			netpol.LabelPrefix + constants.NetworkPolicyAllWebhookTargets: netpol.LabelValue,
			netpol.LabelPrefix + constants.NetworkPolicyExtensions + "-" + constants.NetworkPolicyAllWebhookTargets: netpol.LabelValue,
			netpol.LabelPrefix + values.NamePrefix + "etcd-main-client-tcp-2379":                                    netpol.LabelValue,
			netpol.LabelPrefix + values.NamePrefix + "etcd-events-client-tcp-2379":                                  netpol.LabelValue,
		},
		Replicas: values.Replicas, PriorityClass: cmp.Or(values.PriorityClass, constants.PriorityClassSystem500), Container: container, Volumes: volumes,
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: ptr.To(intstr.FromString("100%")), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
		}},
	}.Deployment()
	if err != nil {
		return nil, err
	}
	if values.Exposed {
		deployment.Labels[constants.LabelAPIServerExposure] = constants.APIServerExposureGardenerManaged
	}
	if values.Mounted.hasTunnel() {
		deployment.Spec.Template.Labels[netpol.LabelPrefix+vpnseedserver.Name+"-tcp-"+strconv.Itoa(vpnseedserver.PortClients)] = netpol.LabelValue
	}
	deployment.Spec.MinReadySeconds = readySeconds
	deployment.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](30)
	return deployment, nil
}

// probe authenticates as a user without permissions, because anonymous requests are rejected.
func probe(values Values, path string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTPS,
			HTTPHeaders: []corev1.HTTPHeader{{Name: "Authorization", Value: "Bearer " + values.HealthCheckToken}},
		}},
		PeriodSeconds: 10, TimeoutSeconds: 15, FailureThreshold: 3, SuccessThreshold: 1,
	}
}

// startupProbe detects within a second that the API server is ready, so that its clients need not wait for the other
// probes. The kubelet runs those only afterwards. A start that takes longer than startSeconds has failed.
func startupProbe(values Values) *corev1.Probe {
	startup := probe(values, "/readyz")
	startup.PeriodSeconds, startup.TimeoutSeconds, startup.FailureThreshold = 1, 5, startSeconds
	return startup
}

func requests(values Values) corev1.ResourceList {
	requests := parts.Requests("250m", "500Mi")
	if values.Config.Autoscaling != nil {
		for name, quantity := range values.Config.Autoscaling.MinAllowed {
			requests[name] = quantity
		}
	}
	return requests
}

// volumes returns all volumes and their mounts.
func volumes(values Values, files configured) ([]corev1.Volume, []corev1.VolumeMount) {
	var volumes []corev1.Volume
	var mounts []corev1.VolumeMount
	add := func(volume corev1.Volume, path string) {
		volumes, mounts = append(volumes, volume), append(mounts, parts.Mount(volume.Name, path))
	}
	for _, each := range []struct{ name, secret, path string }{
		{"ca", values.Mounted.CA, pathCA},
		{"ca-client", values.Mounted.ClientCA, pathClientCA},
		{"ca-front-proxy", values.Mounted.FrontProxyCA, pathFrontProxyCA},
		{"ca-etcd", values.Mounted.EtcdCA, pathEtcdCA},
		{"etcd-client", values.Mounted.EtcdClient, pathEtcdClient},
		{"server", values.Mounted.Server, pathServer},
		{"kube-aggregator", values.Mounted.Aggregator, pathAggregator},
		{"service-account-key", values.Mounted.ServiceAccountKey, pathServiceAccountKey},
		{"service-account-key-bundle", values.Mounted.ServiceAccountKeys, pathServiceAccountKeys},
		{"static-token", values.Mounted.StaticTokens, pathToken},
		{"etcd-encryption-secret", values.Encryption.Name, pathEncryption},
		{"ca-kubelet", values.Mounted.KubeletCA, pathKubeletCA},
		{"kubelet-client", values.Mounted.KubeletClient, pathKubeletClient},
		{"ca-vpn", values.Mounted.VPNCA, pathVPNCA},
		{"http-proxy-client", values.Mounted.VPNClient, pathVPNClient},
		{"sni", values.Mounted.SNI, pathSNI},
	} {
		if each.secret != "" {
			add(parts.SecretVolume(each.name, each.secret), each.path)
		}
	}
	for _, each := range []struct {
		name, path string
		configMap  *corev1.ConfigMap
	}{
		{"admission-config", pathAdmission, files.admission},
		{"audit-policy-config", pathAudit, files.audit},
		{"authentication-config", pathAuthentication, files.authentication},
		{"authorization-config", pathAuthorization, files.authorization},
		{"egress-selection-config", pathEgress, files.egress},
	} {
		if each.configMap == nil {
			continue
		}
		add(parts.ConfigVolume(each.name, each.configMap.Name), each.path)
	}
	for _, each := range []struct {
		name, path string
		secret     *corev1.Secret
	}{
		{"admission-kubeconfigs", pathAdmissionKubeconfigs, files.admissionKubeconfigs},
		{"authorization-kubeconfigs", pathAuthorizerKubeconfigs, files.authorizerKubeconfigs},
		{"webhook-kubeconfigs", pathWebhookKubeconfigs, files.webhookKubeconfigs},
	} {
		if each.secret != nil {
			add(parts.SecretVolume(each.name, each.secret.Name), each.path)
		}
	}
	return volumes, mounts
}

// firstAddress returns the first Service address of a network, which is that of the API server; empty if the network is
// invalid.
func firstAddress(network string) string {
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return ""
	}
	return prefix.Masked().Addr().Next().String()
}

// Health returns the health check of the Deployment. The API server is healthy as soon as one Pod is ready. Kubernetes
// reports it as available only after MinReadySeconds, for which a new control plane need not wait.
func Health() resourcesv1alpha1.HealthCheck {
	const (
		replicas = "(has(status.replicas) ? status.replicas : 0)"
		ready    = "(has(status.readyReplicas) ? status.readyReplicas : 0)"
		updated  = "(has(status.updatedReplicas) ? status.updatedReplicas : 0)"
		going    = "(has(status.terminatingReplicas) ? status.terminatingReplicas : 0)"
		observed = "has(status.observedGeneration) && status.observedGeneration == metadata.generation"
	)
	return resourcesv1alpha1.HealthCheck{
		Group: appsv1.GroupName, Kind: "Deployment",
		Healthy: observed + " && (spec.replicas == 0 || " + ready + " > 0)",
		Progressing: "!(" + observed + " && " + updated + " == spec.replicas && " + replicas + " == spec.replicas && " +
			ready + " == spec.replicas && " + going + " == 0)",
		Failed: "has(status.conditions) && status.conditions.exists(c, c.type == 'Progressing' && c.reason == 'ProgressDeadlineExceeded')",
		Message: fmt.Sprintf("'Pods: ' + string(spec.replicas) + ' wanted, ' + string(%s) + ' exist, ' + string(%s) + ' ready, ' + string(%s) + ' up to date'",
			replicas, ready, updated),
	}
}
