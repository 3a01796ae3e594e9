package etcd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/object"
)

const (
	// containerName is the name that VerticalPodAutoscalers and webhooks expect.
	containerName = "etcd"
	// nonroot is the user and group of members.
	nonroot = 65532
	// tokenSeconds is the validity of a member's token. The kubelet renews it.
	tokenSeconds = 3600
	// tokenDirectory is the standard directory of ServiceAccount tokens.
	tokenDirectory = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // no secret
)

// template returns the Pod template, its digest, and the ConfigMap of the Pods.
func (in Inputs) template() (corev1.PodTemplateSpec, string, *corev1.ConfigMap, error) {
	settings, checksum, err := in.configMap()
	if err != nil {
		return corev1.PodTemplateSpec{}, "", nil, err
	}
	labels := maps.Clone(in.Etcd.Spec.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, labelsOf(in.Etcd.Name, componentStatefulSet, in.Etcd.Name))
	annotations := map[string]string{annotationChecksum: checksum}
	maps.Copy(annotations, in.Etcd.Spec.Annotations)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}, Spec: in.podSpec()}
	text, err := json.Marshal(template)
	if err != nil {
		return corev1.PodTemplateSpec{}, "", nil, fmt.Errorf("encode the template of Pods: %w", err)
	}
	return template, object.Digest(text), settings, nil
}

func (in Inputs) podSpec() corev1.PodSpec {
	spec := in.Etcd.Spec
	return corev1.PodSpec{
		ServiceAccountName: in.Etcd.Name, AutomountServiceAccountToken: ptr.To(false),
		PriorityClassName: ptr.Deref(spec.PriorityClassName, ""),
		Affinity:          spec.SchedulingConstraints.Affinity, TopologySpreadConstraints: spec.SchedulingConstraints.TopologySpreadConstraints,
		SecurityContext: in.podSecurity(),
		HostAliases:     []corev1.HostAlias{{IP: "127.0.0.1", Hostnames: []string{in.Etcd.Name + "-local"}}},
		Containers:      []corev1.Container{in.container()},
		Volumes:         in.volumes(),
	}
}

func (in Inputs) podSecurity() *corev1.PodSecurityContext {
	user, root := int64(nonroot), ptr.Deref(in.Etcd.Spec.RunAsRoot, false)
	if root {
		user = 0
	}
	return &corev1.PodSecurityContext{
		RunAsNonRoot: ptr.To(!root), RunAsUser: ptr.To(user), RunAsGroup: ptr.To(user), FSGroup: ptr.To(user),
		// Avoid changing the owner of all files of a large volume at each start.
		FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch),
		SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func (in Inputs) container() corev1.Container {
	container := corev1.Container{
		Name: containerName, Image: in.image(), ImagePullPolicy: corev1.PullIfNotPresent,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Args:                     []string{"--config=" + configDirectory + "/" + keyMember},
		Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"},
		}}},
		Ports: []corev1.ContainerPort{
			containerPort("client", in.clientPort()), containerPort("server", in.peerPort()), containerPort("status", in.statusPort()),
		},
		// A member is ready if it has a quorum. Only then may the next member be replaced.
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/readyz", Port: intstr.FromInt32(in.statusPort()), Scheme: corev1.URISchemeHTTP,
			}},
			PeriodSeconds: 5, TimeoutSeconds: 5, SuccessThreshold: 1, FailureThreshold: 5,
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: in.mounts(),
	}
	if in.Etcd.Spec.ETCD.ClientURLTLS != nil {
		container.ReadinessProbe.HTTPGet.Scheme = corev1.URISchemeHTTPS
	}
	// The startup probe avoids the longer period of the readiness probe for clients. Its threshold ensures that a member
	// that waits for others is never restarted.
	if in.store() != nil {
		container.Ports = append(container.Ports, containerPort("backuprestore", in.backupPort()))
	}
	container.StartupProbe = container.ReadinessProbe.DeepCopy()
	container.StartupProbe.PeriodSeconds, container.StartupProbe.FailureThreshold = 1, math.MaxInt32
	if in.Etcd.Spec.ETCD.Resources != nil {
		container.Resources = *in.Etcd.Spec.ETCD.Resources.DeepCopy()
	}
	return container
}

func containerPort(name string, number int32) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}
}

// secretVolume is a Secret with certificates that is mounted in the Pods.
type secretVolume struct{ name, secret, directory string }

func (in Inputs) secretVolumes() []secretVolume {
	var volumes []secretVolume
	if tls := in.Etcd.Spec.ETCD.ClientURLTLS; tls != nil {
		volumes = append(volumes,
			secretVolume{"client-url-ca-etcd", tls.TLSCASecretRef.Name, directoryCA},
			secretVolume{"client-url-etcd-server-tls", tls.ServerTLSSecretRef.Name, directoryServer},
			secretVolume{"client-url-etcd-client-tls", tls.ClientTLSSecretRef.Name, directoryClient})
	}
	if tls := in.Etcd.Spec.ETCD.PeerURLTLS; tls != nil {
		volumes = append(volumes,
			secretVolume{"peer-url-ca-etcd", tls.TLSCASecretRef.Name, directoryPeerCA},
			secretVolume{"peer-url-etcd-server-tls", tls.ServerTLSSecretRef.Name, directoryPeerServer})
	}
	return volumes
}

func (in Inputs) volumeName() string {
	return cmp.Or(ptr.Deref(in.Etcd.Spec.VolumeClaimTemplate, ""), in.Etcd.Name)
}

func (in Inputs) mounts() []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{
		{Name: in.volumeName(), MountPath: dataDirectory}, {Name: "etcd-config-file", MountPath: configDirectory, ReadOnly: true},
		{Name: "kube-api-access", MountPath: tokenDirectory, ReadOnly: true},
	}
	for _, volume := range in.secretVolumes() {
		mounts = append(mounts, corev1.VolumeMount{Name: volume.name, MountPath: volume.directory, ReadOnly: true})
	}
	_, ofStore := storeVolumes(in.store(), in.StoreSecret, "", directoryBackup, directoryBuckets)
	return append(mounts, ofStore...)
}

func (in Inputs) volumes() []corev1.Volume {
	// Not readable for other users of the node.
	mode := ptr.To[int32](0o440)
	volumes := []corev1.Volume{
		{Name: "etcd-config-file", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: configMapName(in.Etcd.Name)}, DefaultMode: ptr.To[int32](0o444),
		}}},
		{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: mode,
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: ptr.To[int64](tokenSeconds), Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
				}},
			},
		}}},
	}
	for _, volume := range in.secretVolumes() {
		volumes = append(volumes, corev1.Volume{Name: volume.name, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: volume.secret, DefaultMode: mode},
		}})
	}
	ofStore, _ := storeVolumes(in.store(), in.StoreSecret, "", directoryBackup, directoryBuckets)
	return append(volumes, ofStore...)
}

// statefulSet returns the StatefulSet for the current step of the rollout.
func (in Inputs) statefulSet(template corev1.PodTemplateSpec, digest string, step rollout) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: in.meta(componentStatefulSet, in.Etcd.Name)}
	set.Annotations = map[string]string{annotationTemplate: digest}
	if value, found := in.Etcd.Labels[constants.LabelMutatedByControlPlaneWebhook]; found {
		set.Labels[constants.LabelMutatedByControlPlaneWebhook] = value
	}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: in.volumeName()}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: in.capacity()}},
	}}
	if class := in.storageClass(); class != "" {
		claim.Spec.StorageClassName = &class
	}
	update := &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To(step.partition)}
	if step.all {
		update.MaxUnavailable = ptr.To(intstr.FromInt32(step.replicas))
	}
	set.Spec = appsv1.StatefulSetSpec{
		Replicas: ptr.To(step.replicas), ServiceName: PeerServiceName(in.Etcd.Name), PodManagementPolicy: appsv1.ParallelPodManagement,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
			lease.LabelManagedBy: lease.ManagedBy, lease.LabelPartOf: in.Etcd.Name,
		}},
		Template: template, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
		UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: update},
	}
	return set
}

// existingClaim returns the template of the volumes of the existing StatefulSet, or nil. Its fields are immutable.
func (in Inputs) existingClaim() *corev1.PersistentVolumeClaim {
	if in.StatefulSet == nil {
		return nil
	}
	claims := in.StatefulSet.Spec.VolumeClaimTemplates
	at := slices.IndexFunc(claims, func(claim corev1.PersistentVolumeClaim) bool { return claim.Name == in.volumeName() })
	if at < 0 {
		return nil
	}
	return &claims[at]
}

// storageClass returns the storage class of the volumes, empty for the default of the cluster. It is fixed when the
// StatefulSet is created: a webhook of the infrastructure may set the class of an Etcd that already has volumes.
func (in Inputs) storageClass() string {
	if claim := in.existingClaim(); claim != nil {
		return ptr.Deref(claim.Spec.StorageClassName, "")
	}
	return ptr.Deref(in.Etcd.Spec.StorageClass, "")
}

// capacity returns the size of the volumes. It is fixed when the StatefulSet is created.
func (in Inputs) capacity() resource.Quantity {
	if claim := in.existingClaim(); claim != nil {
		if size, found := claim.Spec.Resources.Requests[corev1.ResourceStorage]; found {
			return size
		}
	}
	if in.Etcd.Spec.StorageCapacity != nil {
		return *in.Etcd.Spec.StorageCapacity
	}
	return resource.MustParse("16Gi")
}
