package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ControllerRegistration registers an extension: what it is responsible for and how it is installed.
// +kubebuilder:object:root=true
type ControllerRegistration struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec ControllerRegistrationSpec `json:"spec,omitempty"`
}

// ControllerRegistrationList is a list of ControllerRegistration objects.
// +kubebuilder:object:root=true
type ControllerRegistrationList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ControllerRegistration `json:"items"`
}

// ControllerRegistrationSpec is the desired state of a ControllerRegistration.
type ControllerRegistrationSpec struct {
	// Resources are the kinds and types that the extension is responsible for.
	// +listType=atomic
	// +optional
	Resources []ControllerResource `json:"resources,omitempty"`
	// Deployment defines how the extension is installed.
	// +optional
	Deployment *ControllerRegistrationDeployment `json:"deployment,omitempty"`
}

// ControllerResource is a kind and type that an extension is responsible for.
// +kubebuilder:validation:XValidation:rule="self.kind == 'Extension' || !(has(self.reconcileTimeout) || has(self.lifecycle) || has(self.workerlessSupported) || has(self.autoEnable) || has(self.clusterCompatibility))",message="reconcileTimeout, lifecycle, workerlessSupported, autoEnable and clusterCompatibility are for the kind Extension only"
// +kubebuilder:validation:XValidation:rule="self.kind == 'SelfHostedShootExposure' || !has(self.continuousEndpointUpdate)",message="continuousEndpointUpdate is for the kind SelfHostedShootExposure only"
type ControllerResource struct {
	// Kind is the kind of extension resource.
	// +kubebuilder:validation:Enum=BackupBucket;BackupEntry;Bastion;ContainerRuntime;ControlPlane;DNSRecord;Extension;Infrastructure;Network;OperatingSystemConfig;SelfHostedShootExposure;Worker
	Kind string `json:"kind"`
	// Type is the type of the resource.
	// +kubebuilder:validation:MinLength=1
	Type string `json:"type"`
	// ReconcileTimeout is the time for one operation on a resource of kind Extension. Default: 3m.
	// +optional
	ReconcileTimeout *metav1.Duration `json:"reconcileTimeout,omitempty"`
	// Primary defines whether the extension is the one that is responsible, of several with the same kind and type. Default:
	// true.
	// +optional
	Primary *bool `json:"primary,omitempty"`
	// Lifecycle defines when resources of kind Extension are handled in the flow of a Shoot.
	// +optional
	Lifecycle *ControllerResourceLifecycle `json:"lifecycle,omitempty"`
	// WorkerlessSupported defines whether Shoots without nodes can have the extension. Only for kind Extension.
	// +optional
	WorkerlessSupported *bool `json:"workerlessSupported,omitempty"`
	// AutoEnable are the clusters that get the extension without asking. Only for kind Extension.
	// +listType=atomic
	// +optional
	AutoEnable []ClusterType `json:"autoEnable,omitempty"`
	// ClusterCompatibility are the clusters that can have the extension. Only for kind Extension. Default: shoot.
	// +listType=atomic
	// +optional
	ClusterCompatibility []ClusterType `json:"clusterCompatibility,omitempty"`
	// ContinuousEndpointUpdate defines whether the extension is reconciled on each change of endpoints. Only for kind
	// SelfHostedShootExposure. Default: true.
	// +optional
	ContinuousEndpointUpdate *bool `json:"continuousEndpointUpdate,omitempty"`
}

// ClusterType is a kind of cluster that can have an extension.
// +enum
// +kubebuilder:validation:Enum=shoot;seed;garden
type ClusterType string

// The values of ClusterType.
const (
	// ClusterTypeShoot is a Shoot.
	ClusterTypeShoot ClusterType = "shoot"
	// ClusterTypeSeed is a Seed.
	ClusterTypeSeed ClusterType = "seed"
	// ClusterTypeGarden is the garden. Only the operator's Extension may name it.
	ClusterTypeGarden ClusterType = "garden"
)

// ControllerResourceLifecycle defines when resources are handled in the flow of a Shoot.
// +kubebuilder:validation:XValidation:rule="!has(self.delete) || self.delete != 'AfterWorker'",message="delete must not be AfterWorker"
// +kubebuilder:validation:XValidation:rule="!has(self.migrate) || self.migrate != 'AfterWorker'",message="migrate must not be AfterWorker"
type ControllerResourceLifecycle struct {
	// Reconcile when they are reconciled. Default: AfterKubeAPIServer.
	// +optional
	Reconcile *ControllerResourceLifecycleStrategy `json:"reconcile,omitempty"`
	// Delete when they are deleted. Default: BeforeKubeAPIServer.
	// +optional
	Delete *ControllerResourceLifecycleStrategy `json:"delete,omitempty"`
	// Migrate when they are migrated. Default: BeforeKubeAPIServer.
	// +optional
	Migrate *ControllerResourceLifecycleStrategy `json:"migrate,omitempty"`
}

// ControllerResourceLifecycleStrategy is a moment in the flow of a Shoot.
// +enum
// +kubebuilder:validation:Enum=BeforeKubeAPIServer;AfterKubeAPIServer;AfterWorker
type ControllerResourceLifecycleStrategy string

// The values of ControllerResourceLifecycleStrategy.
const (
	// BeforeKubeAPIServer is before kube-apiserver is deployed or deleted.
	BeforeKubeAPIServer ControllerResourceLifecycleStrategy = "BeforeKubeAPIServer"
	// AfterKubeAPIServer is after kube-apiserver is deployed or deleted.
	AfterKubeAPIServer ControllerResourceLifecycleStrategy = "AfterKubeAPIServer"
	// AfterWorker is after the nodes are ready. Only for reconcile.
	AfterWorker ControllerResourceLifecycleStrategy = "AfterWorker"
)

// ControllerRegistrationDeployment defines how an extension is installed.
type ControllerRegistrationDeployment struct {
	// Policy when it is installed. Default: OnDemand.
	// +optional
	Policy *ControllerDeploymentPolicy `json:"policy,omitempty"`
	// SeedSelector selects the Seeds in which it may be installed. Forbidden while a resource is primary.
	// +optional
	SeedSelector *metav1.LabelSelector `json:"seedSelector,omitempty"`
	// DeploymentRefs refer to the ControllerDeployment. There may be one.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	DeploymentRefs []DeploymentRef `json:"deploymentRefs,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// DeploymentRef refers to a ControllerDeployment.
type DeploymentRef struct {
	// Name is the name of the ControllerDeployment.
	Name string `json:"name"`
}

// ControllerDeploymentPolicy is when an extension is installed in a Seed.
// +enum
// +kubebuilder:validation:Enum=OnDemand;Always;AlwaysExceptNoShoots
type ControllerDeploymentPolicy string

// The values of ControllerDeploymentPolicy.
const (
	// ControllerDeploymentPolicyOnDemand installs it when something in the Seed needs it.
	ControllerDeploymentPolicyOnDemand ControllerDeploymentPolicy = "OnDemand"
	// ControllerDeploymentPolicyAlways installs it in each Seed.
	ControllerDeploymentPolicyAlways ControllerDeploymentPolicy = "Always"
	// ControllerDeploymentPolicyAlwaysExceptNoShoots installs it in each Seed with Shoots.
	ControllerDeploymentPolicyAlwaysExceptNoShoots ControllerDeploymentPolicy = "AlwaysExceptNoShoots"
)
