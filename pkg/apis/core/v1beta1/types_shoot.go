package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Shoot is a Kubernetes cluster for an end user: its control plane runs on a seed, its nodes in the account of the user.
// +kubebuilder:object:root=true
type Shoot struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec ShootSpec `json:"spec,omitempty"`
	// Status is what the controllers observed last.
	// +optional
	Status ShootStatus `json:"status,omitempty"`
}

// ShootList is a list of Shoot objects.
// +kubebuilder:object:root=true
type ShootList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Shoot `json:"items"`
}

// ShootSpec is the desired state of a Shoot.
type ShootSpec struct {
	// Addons holds the components that can be installed into the cluster. Forbidden from Kubernetes 1.35 on.
	// +optional
	Addons *Addons `json:"addons,omitempty"`
	// CloudProfileName is the name of the CloudProfile. Deprecated: use cloudProfile. It is forbidden from Kubernetes 1.34
	// on.
	// +optional
	CloudProfileName *string `json:"cloudProfileName,omitempty"`
	// DNS is the domain of the cluster and the providers that manage it. It cannot be removed.
	// +optional
	DNS *DNS `json:"dns,omitempty"`
	// Extensions ask for extensions of the cluster by their types.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Extensions []Extension `json:"extensions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// Hibernation defines whether and when the cluster is switched off.
	// +optional
	Hibernation *Hibernation `json:"hibernation,omitempty"`
	// Kubernetes is the version of Kubernetes and the settings of its components.
	Kubernetes Kubernetes `json:"kubernetes"`
	// Networking is the network of the cluster. A Shoot with worker pools requires it.
	// +optional
	Networking *Networking `json:"networking,omitempty"`
	// Maintenance defines when and how the cluster is kept up to date.
	// +optional
	Maintenance *Maintenance `json:"maintenance,omitempty"`
	// Monitoring holds the settings of monitoring and alerting.
	// +optional
	Monitoring *Monitoring `json:"monitoring,omitempty"`
	// Provider is the infrastructure and the worker pools.
	Provider Provider `json:"provider"`
	// Purpose is what the cluster is for. Default: evaluation.
	// +optional
	Purpose *ShootPurpose `json:"purpose,omitempty"`
	// Region is the region of the infrastructure. It is immutable.
	Region string `json:"region"`
	// SecretBindingName is the name of the SecretBinding with the infrastructure credentials. Deprecated: use
	// credentialsBindingName.
	// +optional
	SecretBindingName *string `json:"secretBindingName,omitempty"`
	// SeedName is the name of the Seed that hosts the control plane. Only the binding subresource changes it.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// SeedSelector restricts the Seeds that the scheduler may choose.
	// +optional
	SeedSelector *SeedSelector `json:"seedSelector,omitempty"`
	// Resources name the Secrets, ConfigMaps and WorkloadIdentities that the extensions' configurations refer to.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Resources []NamedResourceReference `json:"resources,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Tolerations name the taints of Seeds that the Shoot accepts.
	// +listType=atomic
	// +patchMergeKey=key
	// +patchStrategy=merge
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty" patchStrategy:"merge" patchMergeKey:"key"`
	// ExposureClassName is the name of the ExposureClass by which the API server is exposed.
	// +optional
	ExposureClassName *string `json:"exposureClassName,omitempty"`
	// SystemComponents holds the settings of components that run in the cluster for its own sake.
	// +optional
	SystemComponents *SystemComponents `json:"systemComponents,omitempty"`
	// ControlPlane holds the settings of the control plane.
	// +optional
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`
	// SchedulerName is the name of the scheduler that assigns a Seed. Default: default-scheduler.
	// +optional
	SchedulerName *string `json:"schedulerName,omitempty"`
	// CloudProfile refers to the CloudProfile or NamespacedCloudProfile.
	// +optional
	CloudProfile *CloudProfileReference `json:"cloudProfile,omitempty"`
	// CredentialsBindingName is the name of the CredentialsBinding with the infrastructure credentials. It cannot be unset.
	// +optional
	CredentialsBindingName *string `json:"credentialsBindingName,omitempty"`
	// AccessRestrictions limit who may reach the cluster, by the means that the region offers.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	AccessRestrictions []AccessRestrictionWithOptions `json:"accessRestrictions,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// ShootPurpose is what a cluster is used for.
// +enum
// +kubebuilder:validation:Enum=evaluation;testing;development;production;infrastructure
type ShootPurpose string

// The values of ShootPurpose.
const (
	// ShootPurposeEvaluation is for trying something out.
	ShootPurposeEvaluation ShootPurpose = "evaluation"
	// ShootPurposeTesting is for tests.
	ShootPurposeTesting ShootPurpose = "testing"
	// ShootPurposeDevelopment is for development.
	ShootPurposeDevelopment ShootPurpose = "development"
	// ShootPurposeProduction is for production.
	ShootPurposeProduction ShootPurpose = "production"
	// ShootPurposeInfrastructure is for the landscape itself. Only Shoots in the namespace garden may have it.
	ShootPurposeInfrastructure ShootPurpose = "infrastructure"
)

// CloudProfileReference refers to a CloudProfile or a NamespacedCloudProfile.
type CloudProfileReference struct {
	// Kind CloudProfile or NamespacedCloudProfile. Default: CloudProfile.
	Kind string `json:"kind"`
	// Name is the name of the object.
	Name string `json:"name"`
}

// Toleration accepts a taint of Seeds.
type Toleration struct {
	// Key is the key of the taint.
	Key string `json:"key"`
	// Value is the value of the taint.
	// +optional
	Value *string `json:"value,omitempty"`
}

// SeedSelector selects Seeds by labels and by provider.
type SeedSelector struct {
	metav1.LabelSelector `json:",inline"`
	// ProviderTypes are the provider types of the Seeds. A * stands for all.
	// +listType=atomic
	// +optional
	ProviderTypes []string `json:"providerTypes,omitempty"`
}

// AccessRestriction limits who may reach a cluster.
type AccessRestriction struct {
	// Name is the name of the restriction.
	Name string `json:"name"`
}

// AccessRestrictionWithOptions limits who may reach a cluster, with options.
type AccessRestrictionWithOptions struct {
	AccessRestriction `json:",inline"`
	// Options holds the settings of the restriction.
	// +optional
	Options map[string]string `json:"options,omitempty"`
}

// Extension requests an extension.
type Extension struct {
	// Type is the type of the extension, unique in its list.
	Type string `json:"type"`
	// ProviderConfig is the configuration of the extension, in a format of its own.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Disabled switches off an extension that is enabled for all clusters.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`
}
