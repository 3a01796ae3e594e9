package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Etcd is a cluster of etcd with its backups.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=etcds
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`,description="Whether the members are ready"
// +kubebuilder:printcolumn:name="Quorate",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether a majority of the members is ready"
// +kubebuilder:printcolumn:name="All Members Ready",type=string,JSONPath=`.status.conditions[?(@.type=="AllMembersReady")].status`,description="Whether all members are ready"
// +kubebuilder:printcolumn:name="Backup Ready",type=string,JSONPath=`.status.conditions[?(@.type=="BackupReady")].status`,description="Whether backups are made"
// +kubebuilder:printcolumn:name="Cluster Size",type=integer,JSONPath=`.spec.replicas`,description="The wanted number of members"
// +kubebuilder:printcolumn:name="Current Replicas",type=integer,JSONPath=`.status.currentReplicas`,description="The number of members"
// +kubebuilder:printcolumn:name="Ready Replicas",type=integer,JSONPath=`.status.readyReplicas`,description="The number of ready members"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type Etcd struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec EtcdSpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status EtcdStatus `json:"status,omitempty"`
}

// EtcdList is a list of Etcd objects.
// +kubebuilder:object:root=true
type EtcdList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Etcd `json:"items"`
}

// EtcdSpec is the desired state of an Etcd.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.storageClass) || has(self.storageClass)",message="storageClass cannot be removed"
// +kubebuilder:validation:XValidation:rule="has(self.volumeClaimTemplate) == has(oldSelf.volumeClaimTemplate)",message="volumeClaimTemplate is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.memberNamePrefix) == has(oldSelf.memberNamePrefix)",message="memberNamePrefix is immutable"
type EtcdSpec struct {
	// Selector selects the pods of the cluster by their labels.
	Selector metav1.LabelSelector `json:"selector"`
	// Labels are the labels of the pods.
	Labels map[string]string `json:"labels"`
	// Annotations are the annotations of the pods.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// ETCD holds the settings of etcd.
	ETCD EtcdConfig `json:"etcd"`
	// Backup holds the settings of backups.
	Backup BackupSpec `json:"backup"`
	// SharedConfig holds the settings that etcd and its backups have in common.
	// +optional
	SharedConfig *SharedConfig `json:"sharedConfig,omitempty"`
	// SchedulingConstraints restrict the nodes of the pods.
	// +optional
	SchedulingConstraints SchedulingConstraints `json:"schedulingConstraints,omitempty"`
	// Replicas is the number of members.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf || self == 0",message="can only grow or become 0"
	Replicas int32 `json:"replicas"`
	// PriorityClassName is the name of the priority class of the pods.
	// +optional
	PriorityClassName *string `json:"priorityClassName,omitempty"`
	// StorageClass is the name of the storage class of the volumes. Once set, it is immutable. It has no effect on volumes
	// that exist.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	StorageClass *string `json:"storageClass,omitempty"`
	// StorageCapacity is the size of the volumes.
	// +optional
	StorageCapacity *resource.Quantity `json:"storageCapacity,omitempty"`
	// VolumeClaimTemplate is the name of the template for volume claims. It is immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	VolumeClaimTemplate *string `json:"volumeClaimTemplate,omitempty"`
	// RunAsRoot defines whether the containers run as the user root.
	// +optional
	RunAsRoot *bool `json:"runAsRoot,omitempty"`
	// ExternallyManagedMemberAddresses are the addresses of members whose pods another component runs.
	// +listType=atomic
	// +optional
	ExternallyManagedMemberAddresses []string `json:"externallyManagedMemberAddresses,omitempty"`
	// MemberNamePrefix is the prefix of the names of members. It is immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	MemberNamePrefix *string `json:"memberNamePrefix,omitempty"`
}

// EtcdConfig holds the settings of etcd.
type EtcdConfig struct {
	// Quota is the size that the database may have.
	// +optional
	Quota *resource.Quantity `json:"quota,omitempty"`
	// SnapshotCount is the number of transactions after which etcd writes its state to disk.
	// +optional
	SnapshotCount *int64 `json:"snapshotCount,omitempty"`
	// DefragmentationSchedule when members are defragmented, as a cron expression with five fields.
	// +optional
	DefragmentationSchedule *string `json:"defragmentationSchedule,omitempty"`
	// ServerPort is the port for other members.
	// +optional
	ServerPort *int32 `json:"serverPort,omitempty"`
	// ClientPort is the port for clients.
	// +optional
	ClientPort *int32 `json:"clientPort,omitempty"`
	// WrapperPort is the port of the process that starts etcd.
	// +optional
	WrapperPort *int32 `json:"wrapperPort,omitempty"`
	// Image is the image of the container.
	// +optional
	Image *string `json:"image,omitempty"`
	// AuthSecretRef refers to a Secret with a user name and a password.
	// +optional
	AuthSecretRef *corev1.SecretReference `json:"authSecretRef,omitempty"`
	// Metrics defines which metrics etcd has.
	// +optional
	Metrics *MetricsLevel `json:"metrics,omitempty"`
	// Resources is the resource requests and limits of the container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// ClientURLTLS is the certificates for connections with clients.
	// +optional
	ClientURLTLS *TLSConfig `json:"clientUrlTls,omitempty"`
	// PeerURLTLS is the certificates for connections between members.
	// +optional
	PeerURLTLS *TLSConfig `json:"peerUrlTls,omitempty"`
	// ETCDDefragTimeout is the time in which a member must be defragmented.
	// +optional
	ETCDDefragTimeout *metav1.Duration `json:"etcdDefragTimeout,omitempty"`
	// HeartbeatDuration is the time between two signs of life of a member.
	// +optional
	HeartbeatDuration *metav1.Duration `json:"heartbeatDuration,omitempty"`
	// ClientService holds the settings of the Service for clients.
	// +optional
	ClientService *ClientService `json:"clientService,omitempty"`
}

// MetricsLevel defines which metrics etcd has.
// +enum
// +kubebuilder:validation:Enum=basic;extensive
type MetricsLevel string

// The values of MetricsLevel.
const (
	// Basic has the usual ones.
	Basic MetricsLevel = "basic"
	// Extensive has histograms, too.
	Extensive MetricsLevel = "extensive"
)

// ClientService holds the settings of the Service for clients.
type ClientService struct {
	// Annotations are the annotations of the Service.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Labels are the labels of the Service.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// TrafficDistribution defines how traffic is spread over members.
	// +optional
	TrafficDistribution *string `json:"trafficDistribution,omitempty"`
}

// TLSConfig refers to the certificates for connections.
type TLSConfig struct {
	// TLSCASecretRef refers to the certificate of the authority.
	TLSCASecretRef SecretReference `json:"tlsCASecretRef"`
	// ServerTLSSecretRef refers to the certificate and key of the server.
	ServerTLSSecretRef corev1.SecretReference `json:"serverTLSSecretRef"`
	// ClientTLSSecretRef refers to the certificate and key of a client.
	// +optional
	ClientTLSSecretRef corev1.SecretReference `json:"clientTLSSecretRef,omitempty"`
}

// SecretReference refers to a key of a Secret.
type SecretReference struct {
	corev1.SecretReference `json:",inline"`
	// DataKey is the key.
	// +optional
	DataKey *string `json:"dataKey,omitempty"`
}

// SharedConfig holds the settings that etcd and its backups have in common.
type SharedConfig struct {
	// AutoCompactionMode defines what autoCompactionRetention counts.
	// +optional
	AutoCompactionMode *CompactionMode `json:"autoCompactionMode,omitempty"`
	// AutoCompactionRetention is how much history etcd keeps.
	// +optional
	AutoCompactionRetention *string `json:"autoCompactionRetention,omitempty"`
}

// CompactionMode defines what the retention of history counts.
// +enum
// +kubebuilder:validation:Enum=periodic;revision
type CompactionMode string

// The values of CompactionMode.
const (
	// Periodic counts time.
	Periodic CompactionMode = "periodic"
	// Revision counts revisions.
	Revision CompactionMode = "revision"
)

// SchedulingConstraints restrict the nodes of pods.
type SchedulingConstraints struct {
	// Affinity defines which nodes the pods prefer or need.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// TopologySpreadConstraints define how the pods are spread.
	// +listType=atomic
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
}
