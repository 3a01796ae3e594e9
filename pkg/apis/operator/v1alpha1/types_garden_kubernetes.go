package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Kubernetes is the version of Kubernetes and the settings of its components.
type Kubernetes struct {
	// KubeAPIServer holds the settings of kube-apiserver.
	// +optional
	KubeAPIServer *KubeAPIServerConfig `json:"kubeAPIServer,omitempty"`
	// KubeControllerManager holds the settings of kube-controller-manager.
	// +optional
	KubeControllerManager *KubeControllerManagerConfig `json:"kubeControllerManager,omitempty"`
	// Version is the version. It can be raised by one minor version at a time.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^1\.3[2-9]\.[0-9]+$`
	// +kubebuilder:validation:XValidation:rule="int(self.split('.')[1]) > int(oldSelf.split('.')[1]) || (int(self.split('.')[1]) == int(oldSelf.split('.')[1]) && int(self.split('.')[2]) >= int(oldSelf.split('.')[2]))",message="cannot be lowered"
	// +kubebuilder:validation:XValidation:rule="int(self.split('.')[1]) <= int(oldSelf.split('.')[1]) + 1",message="can be raised by one minor version at a time"
	Version string `json:"version"`
}

// KubeAPIServerConfig holds the settings of kube-apiserver.
type KubeAPIServerConfig struct {
	gardencorev1beta1.KubeAPIServerConfig `json:",inline"`
	// AuditWebhook is the webhook that audit events are sent to.
	// +optional
	AuditWebhook *AuditWebhook `json:"auditWebhook,omitempty"`
	// Authentication defines how users are authenticated.
	// +optional
	Authentication *Authentication `json:"authentication,omitempty"`
	// ResourcesToStoreInETCDEvents are the resources that are kept in the etcd for Events.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +optional
	ResourcesToStoreInETCDEvents []GroupResource `json:"resourcesToStoreInETCDEvents,omitempty"`
	// SNI is the certificate for names other than those of the API server.
	// +optional
	SNI *SNI `json:"sni,omitempty"`
}

// AuditWebhook is a webhook that audit events are sent to.
type AuditWebhook struct {
	// BatchMaxSize is the number of events in one request. Default: 30.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=30
	BatchMaxSize *int32 `json:"batchMaxSize,omitempty"`
	// KubeconfigSecretName is the name of a Secret with the kubeconfig of the webhook.
	// +kubebuilder:validation:MinLength=1
	KubeconfigSecretName string `json:"kubeconfigSecretName"`
	// Version is the API version of the events.
	// +optional
	// +kubebuilder:validation:Enum="audit.k8s.io/v1"
	// +kubebuilder:default="audit.k8s.io/v1"
	Version *string `json:"version,omitempty"`
}

// Authentication defines how users are authenticated.
type Authentication struct {
	// Webhook is the webhook that authenticates users.
	// +optional
	Webhook *AuthenticationWebhook `json:"webhook,omitempty"`
}

// AuthenticationWebhook is a webhook that authenticates users.
type AuthenticationWebhook struct {
	// CacheTTL is the time for which answers are kept.
	// +optional
	CacheTTL *metav1.Duration `json:"cacheTTL,omitempty"`
	// KubeconfigSecretName is the name of a Secret with the kubeconfig of the webhook.
	// +kubebuilder:validation:MinLength=1
	KubeconfigSecretName string `json:"kubeconfigSecretName"`
	// Version is the API version of the requests. Default: v1beta1.
	// +optional
	// +kubebuilder:validation:Enum=v1alpha1;v1beta1;v1
	// +kubebuilder:default=v1beta1
	Version *string `json:"version,omitempty"`
}

// GroupResource identifies a resource.
type GroupResource struct {
	// Group is its API group.
	Group string `json:"group"`
	// Resource is its name, in plural.
	Resource string `json:"resource"`
}

// SNI is a certificate for further names of an API server.
type SNI struct {
	// SecretName is the name of a Secret with the certificate. Default: the one that the operator finds by its label.
	// +optional
	SecretName *string `json:"secretName,omitempty"`
	// DomainPatterns are the names for which the certificate is used.
	// +listType=atomic
	// +optional
	DomainPatterns []string `json:"domainPatterns,omitempty"`
}

// KubeControllerManagerConfig holds the settings of kube-controller-manager.
type KubeControllerManagerConfig struct {
	gardencorev1beta1.KubeControllerManagerConfig `json:",inline"`
	// CertificateSigningDuration is the time for which certificates are issued at most. Default: 48h.
	// +optional
	// +kubebuilder:default="48h"
	CertificateSigningDuration *metav1.Duration `json:"certificateSigningDuration,omitempty"`
}
