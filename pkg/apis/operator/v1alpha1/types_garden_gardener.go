package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Gardener holds the settings of a garden's components.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.gardenerDiscoveryServer) || has(self.gardenerDiscoveryServer)",message="gardenerDiscoveryServer cannot be removed"
type Gardener struct {
	// ClusterIdentity is the identity of the garden. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	ClusterIdentity string `json:"clusterIdentity"`
	// GardenerAPIServer holds the settings of the API server of the garden's kinds.
	// +optional
	GardenerAPIServer *GardenerAPIServerConfig `json:"gardenerAPIServer,omitempty"`
	// GardenerAdmissionController holds the settings of the admission controller.
	// +optional
	GardenerAdmissionController *GardenerAdmissionControllerConfig `json:"gardenerAdmissionController,omitempty"`
	// GardenerControllerManager holds the settings of the controller manager.
	// +optional
	GardenerControllerManager *GardenerControllerManagerConfig `json:"gardenerControllerManager,omitempty"`
	// GardenerScheduler holds the settings of the scheduler.
	// +optional
	GardenerScheduler *GardenerSchedulerConfig `json:"gardenerScheduler,omitempty"`
	// GardenerDashboard holds the settings of the dashboard. Without it, the dashboard is not installed.
	// +optional
	GardenerDashboard *GardenerDashboardConfig `json:"gardenerDashboard,omitempty"`
	// GardenerDiscoveryServer holds the settings of the discovery server. It cannot be removed.
	// +optional
	GardenerDiscoveryServer *GardenerDiscoveryServerConfig `json:"gardenerDiscoveryServer,omitempty"`
	// GardenerResourceManager holds the settings of the resource-manager.
	// +optional
	GardenerResourceManager *GardenerResourceManagerConfig `json:"gardenerResourceManager,omitempty"`
}

// GardenerAPIServerConfig holds the settings of the API server of the garden's kinds.
type GardenerAPIServerConfig struct {
	gardencorev1beta1.KubernetesConfig `json:",inline"`
	// AdmissionPlugins switch admission plugins on or off and configure them.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	AdmissionPlugins []gardencorev1beta1.AdmissionPlugin `json:"admissionPlugins,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// AuditConfig defines what is written to the audit log.
	// +optional
	AuditConfig *gardencorev1beta1.AuditConfig `json:"auditConfig,omitempty"`
	// AuditWebhook is the webhook that audit events are sent to.
	// +optional
	AuditWebhook *AuditWebhook `json:"auditWebhook,omitempty"`
	// Logging is the verbosity of logs.
	// +optional
	Logging *gardencorev1beta1.APIServerLogging `json:"logging,omitempty"`
	// Requests limits the requests that are handled at a time.
	// +optional
	Requests *gardencorev1beta1.APIServerRequests `json:"requests,omitempty"`
	// WatchCacheSizes is the sizes of watch caches.
	// +optional
	WatchCacheSizes *gardencorev1beta1.WatchCacheSizes `json:"watchCacheSizes,omitempty"`
	// EncryptionConfig defines what is encrypted in etcd, and how.
	// +optional
	EncryptionConfig *gardencorev1beta1.EncryptionConfig `json:"encryptionConfig,omitempty"`
	// GoAwayChance is the share of connections that are closed at random, so that load is spread. From 0 to 0.02.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self <= 0.02",message="must be at most 0.02"
	GoAwayChance *float64 `json:"goAwayChance,omitempty"`
	// ShootAdminKubeconfigMaxExpiration is the time for which a kubeconfig for administrators is valid at most, from 1h on.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('4294967296s')",message="must be from 1h to 4294967296s"
	ShootAdminKubeconfigMaxExpiration *metav1.Duration `json:"shootAdminKubeconfigMaxExpiration,omitempty"`
}

// GardenerAdmissionControllerConfig holds the settings of the admission controller.
type GardenerAdmissionControllerConfig struct {
	// LogLevel is the level of logs. Default: info.
	// +optional
	// +kubebuilder:validation:Enum=info;debug;error
	// +kubebuilder:default=info
	LogLevel *string `json:"logLevel,omitempty"`
	// ResourceAdmissionConfiguration limits the size and number of objects.
	// +optional
	ResourceAdmissionConfiguration *ResourceAdmissionConfiguration `json:"resourceAdmissionConfiguration,omitempty"`
}

// ResourceAdmissionConfiguration limits the size and number of objects.
type ResourceAdmissionConfiguration struct {
	// Limits are the limits.
	// +listType=atomic
	Limits []ResourceLimit `json:"limits"`
	// UnrestrictedSubjects are the users that the limits do not apply to.
	// +listType=atomic
	// +optional
	UnrestrictedSubjects []rbacv1.Subject `json:"unrestrictedSubjects,omitempty"`
	// OperationMode defines what happens to objects above a limit. In effect without a value: block.
	// +optional
	OperationMode *ResourceAdmissionWebhookMode `json:"operationMode,omitempty"`
}

// ResourceAdmissionWebhookMode defines what happens to objects above a limit.
// +enum
// +kubebuilder:validation:Enum=block;log
type ResourceAdmissionWebhookMode string

// The values of ResourceAdmissionWebhookMode.
const (
	// AdmissionModeBlock rejects them.
	AdmissionModeBlock ResourceAdmissionWebhookMode = "block"
	// AdmissionModeLog logs them.
	AdmissionModeLog ResourceAdmissionWebhookMode = "log"
)

// ResourceLimit limits the size or number of objects of some resources.
// +kubebuilder:validation:XValidation:rule="has(self.size) || has(self.count)",message="size or count is required"
type ResourceLimit struct {
	// APIGroups are the API groups of the resources. A * stands for all.
	// +listType=atomic
	// +optional
	APIGroups []string `json:"apiGroups,omitempty"`
	// APIVersions are the API versions of the resources. A * stands for all.
	// +listType=atomic
	// +optional
	APIVersions []string `json:"apiVersions,omitempty"`
	// Resources are the resources. A * stands for all.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	Resources []string `json:"resources"`
	// Size is the size that an object may have.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// Count is the number of objects that may exist.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Count *int64 `json:"count,omitempty"`
}

// GardenerControllerManagerConfig holds the settings of the controller manager.
type GardenerControllerManagerConfig struct {
	gardencorev1beta1.KubernetesConfig `json:",inline"`
	// DefaultProjectQuotas are the ResourceQuotas that the namespaces of projects get.
	// +listType=atomic
	// +optional
	DefaultProjectQuotas []ProjectQuotaConfiguration `json:"defaultProjectQuotas,omitempty"`
	// LogLevel is the level of logs. Default: info.
	// +optional
	// +kubebuilder:validation:Enum=info;debug;error
	// +kubebuilder:default=info
	LogLevel *string `json:"logLevel,omitempty"`
}

// ProjectQuotaConfiguration defines which ResourceQuota the namespaces of projects get.
type ProjectQuotaConfiguration struct {
	// Config is the ResourceQuota.
	Config corev1.ResourceQuota `json:"config"`
	// ProjectSelector selects the Projects by their labels. Default: all.
	// +optional
	ProjectSelector *metav1.LabelSelector `json:"projectSelector,omitempty"`
}

// GardenerSchedulerConfig holds the settings of the scheduler.
type GardenerSchedulerConfig struct {
	gardencorev1beta1.KubernetesConfig `json:",inline"`
	// LogLevel is the level of logs. Default: info.
	// +optional
	// +kubebuilder:validation:Enum=info;debug;error
	// +kubebuilder:default=info
	LogLevel *string `json:"logLevel,omitempty"`
	// Strategy defines which Seeds are candidates for a Shoot. In effect without a value: SameRegion.
	// +optional
	Strategy *SchedulingStrategy `json:"strategy,omitempty"`
}

// SchedulingStrategy defines which Seeds are candidates for a Shoot.
// +enum
// +kubebuilder:validation:Enum=SameRegion;MinimalDistance
type SchedulingStrategy string

// The values of SchedulingStrategy.
const (
	// SameRegion takes Seeds in the region of the Shoot.
	SameRegion SchedulingStrategy = "SameRegion"
	// MinimalDistance takes the Seeds in the nearest region.
	MinimalDistance SchedulingStrategy = "MinimalDistance"
)

// GardenerDiscoveryServerConfig holds the settings of the discovery server.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.domain) || (has(self.domain) && self.domain.name == oldSelf.domain.name)",message="domain is immutable"
type GardenerDiscoveryServerConfig struct {
	// Domain is the domain of the server. It is immutable once set. Default: the name discovery in the first domain for
	// Ingresses.
	// +optional
	Domain *DNSDomain `json:"domain,omitempty"`
	// TLSSecretName is the name of a Secret with the certificate of the server.
	// +optional
	TLSSecretName *string `json:"tlsSecretName,omitempty"`
}

// GardenerResourceManagerConfig holds the settings of the resource-manager.
type GardenerResourceManagerConfig struct {
	// AdditionalTargetNamespaces further namespaces of the garden in which it may manage objects.
	// +listType=atomic
	// +optional
	AdditionalTargetNamespaces []string `json:"additionalTargetNamespaces,omitempty"`
}
