// Package etcd contains one of the two etcd clusters of a control plane: the main cluster or the cluster for Events.
// The etcd operator in the seed creates it from an Etcd resource. Names and settings are the same as in Gardener.
package etcd

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// Role is the role of an etcd cluster in a control plane.
type Role string

// The roles.
const (
	RoleMain   Role = "main"
	RoleEvents Role = "events"
)

// SecretClient is the name of the config of the client certificate, which both clusters share.
const SecretClient = "etcd-client"

const (
	portClient = 2379
	portPeer   = 2380
	portBackup = 8080
	quota      = "8Gi"
)

// Values are the inputs of the component.
type Values struct {
	// Namespace of the control plane, and Role of the cluster.
	Namespace string
	Role      Role
	// NamePrefix is the prefix of the names of all objects; empty for those of a shoot.
	NamePrefix string
	// PriorityClass of the members; empty for that of control planes of shoots.
	PriorityClass string
	// Replicas is 1, 3 for a highly available cluster, or 0 while the shoot is hibernated.
	Replicas int32
	// HighlyAvailable enables TLS between members. It is set as soon as the cluster is supposed to have several members.
	HighlyAvailable bool
	// Storage is the size of a volume, and StorageClass the name of its class; nil for the default. They are immutable.
	Storage      resource.Quantity
	StorageClass *string
	// Defragmentation is the schedule of defragmentations, as a cron expression.
	Defragmentation string
	// Autoscaling contains the minimum requests of the Shoot; nil for none.
	Autoscaling *corev1beta1.ControlPlaneAutoscaling
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The seed must define the kind.
	VerticalPodAutoscaler bool
	// Backup defines where the cluster is backed up; nil for no backups.
	Backup *Backup
	// CA is the CA bundle, Server and Client are certificates. PeerCA and Peer are their counterparts for the members of a
	// highly available cluster.
	CA, Server, Client, PeerCA, Peer string
}

// Name returns the name of an Etcd.
func Name(role Role) string { return "etcd-" + string(role) }

// SecretServer returns the name of the config of the members' server certificate.
func SecretServer(role Role) string { return "etcd-server-" + string(role) }

// SecretPeer returns the name of the config of the members' peer certificate.
func SecretPeer(role Role) string { return "etcd-peer-server-" + string(role) }

// name returns the name of the Etcd.
func (v Values) name() string { return v.NamePrefix + Name(v.Role) }

// Storage returns the size of a volume. It is at least the minimum volume size of the Seed.
func Storage(role Role, seed *corev1beta1.SeedVolume) resource.Quantity {
	size := resource.MustParse("25Gi")
	if role == RoleEvents {
		size = resource.MustParse("10Gi")
	}
	if seed != nil && seed.MinimumSize != nil && seed.MinimumSize.Cmp(size) > 0 {
		return *seed.MinimumSize
	}
	return size
}

// ClientSecret returns the config of the client certificate for both clusters.
func ClientSecret() secrets.Config {
	return secrets.Config{Name: SecretClient, Kind: secrets.KindClient, CommonName: SecretClient, SignedBy: constants.SecretNameCAETCD}
}

// Secrets returns the configs of the certificates of members.
func Secrets(values Values) []secrets.Config {
	name := values.name()
	local := []string{name + "-local", "localhost"}
	peers := name + "-peer"
	names := slices.Concat(local, parts.ServiceNames(values.Namespace, name+"-client"))
	for _, service := range parts.ServiceNames(values.Namespace, peers) {
		names = append(names, "*."+service)
	}
	addresses := []string{"127.0.0.1", "::1"}
	configs := []secrets.Config{{
		Name: SecretServer(values.Role), Kind: secrets.KindServerClient, CommonName: "etcd-server",
		DNSNames: names, IPAddresses: addresses, SignedBy: constants.SecretNameCAETCD,
	}}
	if values.HighlyAvailable {
		peerNames := parts.ServiceNames(values.Namespace, peers)
		for _, service := range parts.ServiceNames(values.Namespace, peers) {
			peerNames = append(peerNames, "*."+service)
		}
		configs = append(configs, secrets.Config{
			Name: SecretPeer(values.Role), Kind: secrets.KindServerClient, CommonName: "etcd-server",
			DNSNames: append(peerNames, local...), IPAddresses: addresses,
			SignedBy: constants.SecretNameCAETCDPeer, ByOther: true,
		})
	}
	return configs
}

// Objects returns the objects of the component.
func Objects(values Values) ([]client.Object, error) {
	if values.Replicas > 1 && !values.HighlyAvailable {
		return nil, fmt.Errorf("%s has %d members, which requires TLS between members", values.name(), values.Replicas)
	}
	etcd := values.etcd()
	content, err := toUnstructured(etcd)
	if err != nil {
		return nil, err
	}
	objects := []client.Object{content}
	if values.VerticalPodAutoscaler {
		objects = append(objects, values.autoscaler())
	}
	return objects, nil
}

// Health returns the health check of an Etcd. It is healthy if a majority of its members is ready, and rolled out if
// all members have the current spec and are ready. Gardener also waits for status.ready.
func Health() resourcesv1alpha1.HealthCheck {
	const (
		observed = "has(status.observedGeneration) && status.observedGeneration == metadata.generation && " +
			"(!has(metadata.annotations) || !('gardener.cloud/operation' in metadata.annotations)) && " +
			"(!has(status.lastErrors) || size(status.lastErrors) == 0)"
		updated = "has(status.conditions) && status.conditions.exists(c, c.type == 'AllMembersUpdated' && c.status == 'True')"
		all     = "has(status.ready) && status.ready"
		ready   = "(spec.replicas == 0 || " +
			"(has(status.conditions) && status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')))"
	)
	return resourcesv1alpha1.HealthCheck{
		Group: druidv1alpha1.GroupName, Kind: "Etcd",
		Healthy:     observed + " && " + ready,
		Progressing: "!(" + observed + " && " + updated + " && " + all + ")",
		Failed:      "has(status.lastErrors) && size(status.lastErrors) > 0",
		Message: "has(status.lastErrors) && size(status.lastErrors) > 0 ? status.lastErrors[0].description : " +
			"'members are not ready, or not updated'",
	}
}

func (v Values) selector() map[string]string {
	return map[string]string{"app": "etcd-statefulset", "role": string(v.Role)}
}

func (v Values) etcd() *druidv1alpha1.Etcd {
	name, claim, metrics := v.name(), v.name(), druidv1alpha1.Basic
	least := map[string]string{corev1.ResourceCPU.String(): "30m", corev1.ResourceMemory.String(): "150M"}
	podAnnotations := map[string]string(nil)
	annotations := parts.Merge(v.Backup.annotations(), map[string]string{constants.AnnotationGardenerOperation: constants.OperationReconcile})
	if v.Role == RoleMain {
		claim, metrics = "main-"+v.NamePrefix+"etcd", druidv1alpha1.Extensive
		least = map[string]string{corev1.ResourceCPU.String(): "150m", corev1.ResourceMemory.String(): "500M"}
		if !v.HighlyAvailable {
			podAnnotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
		}
	} else {
		annotations["resources.druid.gardener.cloud/allow-unhealthy-pod-eviction"] = ""
	}
	labels := parts.Merge(v.selector(), map[string]string{
		constants.LabelGardenRole: constants.RoleControlPlane, constants.LabelMutatedByControlPlaneWebhook: "true",
	})
	return &druidv1alpha1.Etcd{
		TypeMeta:   metav1.TypeMeta{APIVersion: druidv1alpha1.SchemeGroupVersion.String(), Kind: "Etcd"},
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: name, Labels: labels, Annotations: annotations},
		Spec: druidv1alpha1.EtcdSpec{
			Replicas: v.Replicas, Selector: metav1.LabelSelector{MatchLabels: v.selector()},
			Labels: v.podLabels(name), Annotations: podAnnotations,
			PriorityClassName: ptr.To(cmp.Or(v.PriorityClass, constants.PriorityClassSystem500)),
			StorageCapacity:   ptr.To(v.Storage), StorageClass: v.StorageClass, VolumeClaimTemplate: ptr.To(claim),
			ETCD: druidv1alpha1.EtcdConfig{
				ClientPort: ptr.To[int32](portClient), ServerPort: ptr.To[int32](portPeer),
				Quota: ptr.To(resource.MustParse(quota)), Metrics: &metrics,
				DefragmentationSchedule: ptr.To(v.Defragmentation),
				ClientURLTLS:            v.tls(v.CA, v.Server, v.Client), PeerURLTLS: v.peerTLS(),
				Resources: &corev1.ResourceRequirements{Requests: v.requests(least)},
			},
			Backup: v.backup(),
		},
	}
}

func (v Values) podLabels(name string) map[string]string {
	labels := parts.Merge(v.selector(), map[string]string{
		constants.LabelGardenRole:                      constants.RoleControlPlane,
		constants.LabelNetworkPolicyToDNS:              constants.NetworkPolicyAllowed,
		constants.LabelNetworkPolicyToPublicNetworks:   constants.NetworkPolicyAllowed,
		constants.LabelNetworkPolicyToPrivateNetworks:  constants.NetworkPolicyAllowed,
		constants.LabelNetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
	})
	if v.HighlyAvailable {
		for _, port := range []int{portClient, portPeer, portBackup} {
			labels[fmt.Sprintf("%s%s-client-tcp-%d", netpol.LabelPrefix, name, port)] = netpol.LabelValue
		}
	}
	return labels
}

func (v Values) requests(least map[string]string) corev1.ResourceList {
	requests := parts.Requests(least["cpu"], least["memory"])
	if v.Autoscaling != nil {
		for name, quantity := range v.Autoscaling.MinAllowed {
			if present := requests[name]; quantity.Cmp(present) > 0 {
				requests[name] = quantity
			}
		}
	}
	return requests
}

func (v Values) tls(ca, server, client string) *druidv1alpha1.TLSConfig {
	return &druidv1alpha1.TLSConfig{
		TLSCASecretRef:     druidv1alpha1.SecretReference{SecretReference: v.ref(ca), DataKey: ptr.To(secrets.KeyBundleCert)},
		ServerTLSSecretRef: v.ref(server), ClientTLSSecretRef: v.ref(client),
	}
}

func (v Values) peerTLS() *druidv1alpha1.TLSConfig {
	if !v.HighlyAvailable {
		return nil
	}
	return &druidv1alpha1.TLSConfig{
		TLSCASecretRef:     druidv1alpha1.SecretReference{SecretReference: v.ref(v.PeerCA), DataKey: ptr.To(secrets.KeyBundleCert)},
		ServerTLSSecretRef: v.ref(v.Peer),
	}
}

func (v Values) ref(name string) corev1.SecretReference {
	return corev1.SecretReference{Namespace: v.Namespace, Name: name}
}

// autoscaler adapts the requests of the members, but not those of the backup sidecar.
func (v Values) autoscaler() *unstructured.Unstructured {
	memory := "300M"
	if v.Role == RoleEvents {
		memory = "60M"
	}
	least := map[string]any{"memory": memory}
	if v.Autoscaling != nil {
		for name, quantity := range v.Autoscaling.MinAllowed {
			least[string(name)] = quantity.String()
		}
	}
	return parts.AutoscalerOf(v.Namespace, v.name(),
		map[string]any{"apiVersion": druidv1alpha1.SchemeGroupVersion.String(), "kind": "Etcd", "name": v.name()},
		map[string]any{"containerName": "etcd", "controlledValues": "RequestsOnly", "minAllowed": least},
		map[string]any{"containerName": "*", "mode": "Off"})
}

// toUnstructured omits the status and empty fields that the API server would interpret as values.
func toUnstructured(etcd *druidv1alpha1.Etcd) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(etcd)
	if err != nil {
		return nil, fmt.Errorf("encode the Etcd %s: %w", etcd.Name, err)
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	for _, empty := range [][]string{{"spec", "schedulingConstraints"}, {"spec", "etcd", "peerUrlTls", "clientTLSSecretRef"}} {
		if value, found, _ := unstructured.NestedMap(u.Object, empty...); found && len(value) == 0 {
			unstructured.RemoveNestedField(u.Object, empty...)
		}
	}
	return u, nil
}
