package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// VirtualCluster is the cluster that a garden is.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.controlPlane) || !has(oldSelf.controlPlane.highAvailability) || (has(self.controlPlane) && has(self.controlPlane.highAvailability))",message="controlPlane.highAvailability cannot be removed"
// +kubebuilder:validation:XValidation:rule="!has(self.gardener.gardenerDashboard) || !has(self.gardener.gardenerDashboard.oidcConfig) || (has(self.kubernetes.kubeAPIServer) && has(self.kubernetes.kubeAPIServer.structuredAuthentication))",message="gardenerDashboard.oidcConfig needs kubernetes.kubeAPIServer.structuredAuthentication"
// +kubebuilder:validation:XValidation:rule="!has(self.gardener.gardenerDashboard) || !has(self.gardener.gardenerDashboard.propagateCAFromSNI) || !self.gardener.gardenerDashboard.propagateCAFromSNI || (has(self.kubernetes.kubeAPIServer) && has(self.kubernetes.kubeAPIServer.sni))",message="gardenerDashboard.propagateCAFromSNI needs kubernetes.kubeAPIServer.sni"
type VirtualCluster struct {
	// ControlPlane holds the settings of the control plane.
	// +optional
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`
	// DNS is the domains of the API server.
	DNS DNS `json:"dns"`
	// ETCD holds the settings of etcd.
	// +optional
	ETCD *ETCD `json:"etcd,omitempty"`
	// Gardener holds the settings of the garden's components.
	Gardener Gardener `json:"gardener"`
	// Kubernetes is the version of Kubernetes and the settings of its components.
	Kubernetes Kubernetes `json:"kubernetes"`
	// Maintenance defines when maintenance takes place.
	Maintenance Maintenance `json:"maintenance"`
	// Networking is the networks of the cluster.
	Networking Networking `json:"networking"`
}

// ControlPlane holds the settings of a control plane.
type ControlPlane struct {
	// HighAvailability makes the control plane survive the failure of a node or zone. It cannot be removed.
	// +optional
	HighAvailability *HighAvailability `json:"highAvailability,omitempty"`
}

// HighAvailability makes a control plane survive the failure of a node or zone.
type HighAvailability struct {
}

// DNS are the domains of an API server.
type DNS struct {
	// Domains are the domains. The name of the first one is immutable.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:XValidation:rule="self[0].name == oldSelf[0].name",message="the name of the first domain is immutable"
	Domains []DNSDomain `json:"domains,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// ETCD holds the settings of the two etcd clusters of a garden.
type ETCD struct {
	// Main holds the settings of the etcd for all objects but Events.
	// +optional
	Main *ETCDMain `json:"main,omitempty"`
	// Events holds the settings of the etcd for Events.
	// +optional
	Events *ETCDEvents `json:"events,omitempty"`
}

// ETCDMain holds the settings of the etcd for all objects but Events.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.backup) || has(self.backup)",message="backup cannot be removed"
type ETCDMain struct {
	// Autoscaling limits how etcd is scaled.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!('memory' in self.minAllowed) || quantity(string(self.minAllowed['memory'])).compareTo(quantity('300M')) >= 0",message="memory in minAllowed must be at least 300M"
	Autoscaling *gardencorev1beta1.ControlPlaneAutoscaling `json:"autoscaling,omitempty"`
	// Backup configures where backups are stored. It cannot be removed.
	// +optional
	Backup *Backup `json:"backup,omitempty"`
	// Storage holds the settings of the volumes.
	// +optional
	Storage *Storage `json:"storage,omitempty"`
}

// ETCDEvents holds the settings of the etcd for Events.
type ETCDEvents struct {
	// Autoscaling limits how etcd is scaled.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!('memory' in self.minAllowed) || quantity(string(self.minAllowed['memory'])).compareTo(quantity('60M')) >= 0",message="memory in minAllowed must be at least 60M"
	Autoscaling *gardencorev1beta1.ControlPlaneAutoscaling `json:"autoscaling,omitempty"`
	// Storage holds the settings of the volumes.
	// +optional
	Storage *Storage `json:"storage,omitempty"`
}

// Storage holds the settings of the volumes of etcd.
type Storage struct {
	// Capacity is the size of the volumes. Default: 10Gi.
	// +optional
	// +kubebuilder:default="10Gi"
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// ClassName is the name of their storage class.
	// +optional
	ClassName *string `json:"className,omitempty"`
}

// Backup configures where backups of etcd are stored.
// +kubebuilder:validation:XValidation:rule="has(self.region) == has(oldSelf.region)",message="region is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.bucketName) == has(oldSelf.bucketName)",message="bucketName is immutable"
type Backup struct {
	// Provider is the type of the infrastructure that keeps them. It is immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Provider string `json:"provider"`
	// BucketName is the name of the bucket. It is immutable. Default: a bucket that the operator manages.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	BucketName *string `json:"bucketName,omitempty"`
	// ProviderConfig is the configuration of the bucket, in the format of the extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Region is the region of the bucket. It is immutable. Default: the region of the runtime cluster.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Region *string `json:"region,omitempty"`
	// SecretRef refers to the Secret with the credentials.
	SecretRef corev1.LocalObjectReference `json:"secretRef"`
}

// Maintenance defines when maintenance takes place.
type Maintenance struct {
	// TimeWindow is the time of the day.
	TimeWindow MaintenanceTimeWindow `json:"timeWindow"`
}

// MaintenanceTimeWindow is a time of the day.
type MaintenanceTimeWindow struct {
	// Begin is the begin of the window, as HHMMSS±HH00.
	// +kubebuilder:validation:Pattern=`^([01]\d|2[0-3])[0-5]\d[0-5]\d[+-](0\d|1[0-4])00$`
	Begin string `json:"begin"`
	// End is the end of the window, as HHMMSS±HH00.
	// +kubebuilder:validation:Pattern=`^([01]\d|2[0-3])[0-5]\d[0-5]\d[+-](0\d|1[0-4])00$`
	End string `json:"end"`
}

// Networking are the networks of a garden.
type Networking struct {
	// Services are the ranges of Services, in CIDR notation, one for each IP family. They can only be added to.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="oldSelf.all(old, old in self)",message="ranges can be added, but not removed"
	Services []string `json:"services"`
}
