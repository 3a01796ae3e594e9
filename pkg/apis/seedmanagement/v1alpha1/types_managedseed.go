package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// ManagedSeed makes a Shoot a Seed.
// +kubebuilder:object:root=true
type ManagedSeed struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec ManagedSeedSpec `json:"spec,omitempty"`
	// Status is what the controllers observed last.
	// +optional
	Status ManagedSeedStatus `json:"status,omitempty"`
}

// ManagedSeedList is a list of ManagedSeed objects.
// +kubebuilder:object:root=true
type ManagedSeedList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ManagedSeed `json:"items"`
}

// ManagedSeedTemplate is a ManagedSeed without a name.
type ManagedSeedTemplate struct {
	// Metadata is the labels and annotations of the ManagedSeed.
	// +optional
	Metadata metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state of the ManagedSeed.
	// +optional
	Spec ManagedSeedSpec `json:"spec,omitempty"`
}

// ManagedSeedSpec is the desired state of a ManagedSeed.
type ManagedSeedSpec struct {
	// Shoot refers to the Shoot. It is required and immutable; a template must not have it.
	// +optional
	Shoot *Shoot `json:"shoot,omitempty"`
	// Gardenlet defines how the gardenlet is deployed.
	Gardenlet GardenletConfig `json:"gardenlet"`
}

// Shoot refers to a Shoot in the namespace garden.
type Shoot struct {
	// Name is the name of the Shoot.
	Name string `json:"name"`
}

// GardenletConfig defines how the gardenlet of a ManagedSeed is deployed.
type GardenletConfig struct {
	// Deployment holds the settings of its Deployment.
	// +optional
	Deployment *GardenletDeployment `json:"deployment,omitempty"`
	// Config is its configuration, a GardenletConfiguration.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Config runtime.RawExtension `json:"config,omitempty"`
	// Bootstrap is how it gets its first credentials. It is immutable. Default: BootstrapToken.
	// +optional
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`
	// MergeWithParent defines whether its configuration is merged over that of the gardenlet which deploys it. It is immutable.
	// Default: true.
	// +optional
	MergeWithParent *bool `json:"mergeWithParent,omitempty"`
}

// Bootstrap is how a gardenlet gets its first credentials.
// +enum
// +kubebuilder:validation:Enum=ServiceAccount;BootstrapToken;None
type Bootstrap string

// The values of Bootstrap.
const (
	// BootstrapServiceAccount uses the token of a service account.
	BootstrapServiceAccount Bootstrap = "ServiceAccount"
	// BootstrapToken uses a bootstrap token.
	BootstrapToken Bootstrap = "BootstrapToken"
	// BootstrapNone uses the kubeconfig of its configuration.
	BootstrapNone Bootstrap = "None"
)

// GardenletDeployment holds the settings of the Deployment of a gardenlet.
type GardenletDeployment struct {
	// ReplicaCount is the number of replicas. Default: 2.
	// +optional
	ReplicaCount *int32 `json:"replicaCount,omitempty"`
	// RevisionHistoryLimit is the number of old ReplicaSets that are kept. Default: 2.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// ServiceAccountName is the name of the service account.
	// +optional
	ServiceAccountName *string `json:"serviceAccountName,omitempty"`
	// Image is the image. Default: that of the gardenlet which deploys it.
	// +optional
	Image *Image `json:"image,omitempty"`
	// Resources is the resource requests and limits.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// PodLabels further labels of the pods.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// PodAnnotations further annotations of the pods.
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`
	// AdditionalVolumes further volumes of the pods.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	AdditionalVolumes []corev1.Volume `json:"additionalVolumes,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// AdditionalVolumeMounts further volume mounts of the container.
	// +listType=map
	// +listMapKey=mountPath
	// +patchMergeKey=mountPath
	// +patchStrategy=merge
	// +optional
	AdditionalVolumeMounts []corev1.VolumeMount `json:"additionalVolumeMounts,omitempty" patchStrategy:"merge" patchMergeKey:"mountPath"`
	// Env further environment variables of the container.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Tolerations are the taints of nodes that the pods accept.
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// EnableHealthProbes defines whether kubelet probes the container. Default: true.
	// +optional
	EnableHealthProbes *bool `json:"enableHealthProbes,omitempty"`
}

// Image is a container image, by one reference or by repository and tag.
type Image struct {
	// Ref is the whole reference.
	// +optional
	Ref *string `json:"ref,omitempty"`
	// Repository is the repository.
	// +optional
	Repository *string `json:"repository,omitempty"`
	// Tag is the tag.
	// +optional
	Tag *string `json:"tag,omitempty"`
	// PullPolicy defines when the image is pulled. Default: Always for the tag latest, else IfNotPresent.
	// +optional
	PullPolicy *corev1.PullPolicy `json:"pullPolicy,omitempty"`
}

// ManagedSeedStatus is the observed state of a ManagedSeed.
type ManagedSeedStatus struct {
	// Conditions describe whether the Shoot is ready and the Seed is registered.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// ObservedGeneration is the generation that the gardenlet has seen last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
