package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// KubeAPIServerConfig holds the settings of kube-apiserver.
type KubeAPIServerConfig struct {
	KubernetesConfig `json:",inline"`
	// AdmissionPlugins switch admission plugins on or off and configure them.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	AdmissionPlugins []AdmissionPlugin `json:"admissionPlugins,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// APIAudiences are the identifiers of the API for which tokens of service accounts may be issued. In effect without a
	// value: kubernetes.
	// +listType=atomic
	// +optional
	APIAudiences []string `json:"apiAudiences,omitempty"`
	// AuditConfig defines what is written to the audit log.
	// +optional
	AuditConfig *AuditConfig `json:"auditConfig,omitempty"`
	// OIDCConfig defines an OpenID Connect issuer whose tokens are accepted. It cannot be combined with structuredAuthentication,
	// which replaces it.
	// +optional
	OIDCConfig *OIDCConfig `json:"oidcConfig,omitempty"`
	// RuntimeConfig switches API groups and versions on or off.
	// +optional
	RuntimeConfig map[string]bool `json:"runtimeConfig,omitempty"`
	// ServiceAccountConfig holds the settings of tokens of service accounts.
	// +optional
	ServiceAccountConfig *ServiceAccountConfig `json:"serviceAccountConfig,omitempty"`
	// WatchCacheSizes is the sizes of watch caches.
	// +optional
	WatchCacheSizes *WatchCacheSizes `json:"watchCacheSizes,omitempty"`
	// Requests limits the requests that are handled at a time.
	// +optional
	Requests *APIServerRequests `json:"requests,omitempty"`
	// EnableAnonymousAuthentication defines whether anonymous requests are accepted. Deprecated: forbidden from Kubernetes 1.35
	// on.
	// +optional
	EnableAnonymousAuthentication *bool `json:"enableAnonymousAuthentication,omitempty"`
	// EventTTL is the time that Events are kept, at most 24h. Default: 1h.
	// +optional
	EventTTL *metav1.Duration `json:"eventTTL,omitempty"`
	// Logging is the verbosity of logs.
	// +optional
	Logging *APIServerLogging `json:"logging,omitempty"`
	// DefaultNotReadyTolerationSeconds is the time that pods stay on a node which is not ready, in seconds. Default: 300.
	// +optional
	DefaultNotReadyTolerationSeconds *int64 `json:"defaultNotReadyTolerationSeconds,omitempty"`
	// DefaultUnreachableTolerationSeconds is the time that pods stay on a node which cannot be reached, in seconds. Default:
	// 300.
	// +optional
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty"`
	// EncryptionConfig defines what is encrypted in etcd, and how.
	// +optional
	EncryptionConfig *EncryptionConfig `json:"encryptionConfig,omitempty"`
	// StructuredAuthentication refers to an AuthenticationConfiguration.
	// +optional
	StructuredAuthentication *StructuredAuthentication `json:"structuredAuthentication,omitempty"`
	// StructuredAuthorization refers to an AuthorizationConfiguration.
	// +optional
	StructuredAuthorization *StructuredAuthorization `json:"structuredAuthorization,omitempty"`
	// Autoscaling limits how kube-apiserver is scaled.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty"`
	// TLSMinVersion is the least version of TLS that is accepted: VersionTLS12 or VersionTLS13.
	// +optional
	TLSMinVersion *string `json:"tlsMinVersion,omitempty"`
}

// AdmissionPlugin configures an admission plugin of kube-apiserver.
type AdmissionPlugin struct {
	// Name is the name of the plugin.
	Name string `json:"name"`
	// Config is the configuration of the plugin, in a format of its own.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`
	// Disabled defines whether the plugin is switched off.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`
	// KubeconfigSecretName is the name of a Secret with the kubeconfig that the plugin uses.
	// +optional
	KubeconfigSecretName *string `json:"kubeconfigSecretName,omitempty"`
}

// AuditConfig defines what is written to the audit log.
type AuditConfig struct {
	// AuditPolicy is the policy for the audit log.
	// +optional
	AuditPolicy *AuditPolicy `json:"auditPolicy,omitempty"`
}

// AuditPolicy refers to a policy for the audit log.
type AuditPolicy struct {
	// ConfigMapRef refers to a ConfigMap with the policy under the key policy.
	// +optional
	ConfigMapRef *corev1.ObjectReference `json:"configMapRef,omitempty"`
}

// OIDCConfig is an OpenID Connect issuer whose tokens kube-apiserver accepts.
type OIDCConfig struct {
	// CABundle is the certificates, in PEM format, that the issuer's certificate is checked with. In effect without a value: those
	// of the system.
	// +optional
	CABundle *string `json:"caBundle,omitempty"`
	// ClientID is the client that tokens must be issued for.
	// +optional
	ClientID *string `json:"clientID,omitempty"`
	// GroupsClaim is the claim with the groups of the user.
	// +optional
	GroupsClaim *string `json:"groupsClaim,omitempty"`
	// GroupsPrefix is the prefix that groups get.
	// +optional
	GroupsPrefix *string `json:"groupsPrefix,omitempty"`
	// IssuerURL is the URL of the issuer.
	// +optional
	IssuerURL *string `json:"issuerURL,omitempty"`
	// RequiredClaims are the claims that tokens must have, with their values.
	// +optional
	RequiredClaims map[string]string `json:"requiredClaims,omitempty"`
	// SigningAlgs are the signature algorithms of the issuer. kube-apiserver accepts all asymmetric ones.
	// +listType=atomic
	// +optional
	SigningAlgs []string `json:"signingAlgs,omitempty"`
	// UsernameClaim is the claim with the name of the user. In effect without a value: sub.
	// +optional
	UsernameClaim *string `json:"usernameClaim,omitempty"`
	// UsernamePrefix is the prefix that names of users get; "-" means none. In effect without a value: the issuer's URL and "#",
	// except for the claim email.
	// +optional
	UsernamePrefix *string `json:"usernamePrefix,omitempty"`
}

// ServiceAccountConfig holds the settings of tokens of service accounts.
type ServiceAccountConfig struct {
	// Issuer is the URL that tokens name as their issuer.
	// +optional
	Issuer *string `json:"issuer,omitempty"`
	// ExtendTokenExpiration defines whether tokens in pods stay valid for longer than requested.
	// +optional
	ExtendTokenExpiration *bool `json:"extendTokenExpiration,omitempty"`
	// MaxTokenExpiration is the time for which tokens are valid at most: 0 or 720h to 2160h.
	// +optional
	MaxTokenExpiration *metav1.Duration `json:"maxTokenExpiration,omitempty"`
	// AcceptedIssuers are the URLs of further issuers whose tokens are accepted.
	// +listType=atomic
	// +optional
	AcceptedIssuers []string `json:"acceptedIssuers,omitempty"`
}

// WatchCacheSizes are the sizes of watch caches.
type WatchCacheSizes struct {
	// Default is the size for resources that are not listed. Deprecated: forbidden from Kubernetes 1.35 on.
	// +optional
	Default *int32 `json:"default,omitempty"`
	// Resources are the sizes for single resources.
	// +listType=atomic
	// +optional
	Resources []ResourceWatchCacheSize `json:"resources,omitempty"`
}

// ResourceWatchCacheSize is the size of the watch cache of one resource.
type ResourceWatchCacheSize struct {
	// APIGroup is the API group of the resource. The core group is empty.
	// +optional
	APIGroup *string `json:"apiGroup,omitempty"`
	// Resource is the name of the resource, in plural.
	Resource string `json:"resource"`
	// CacheSize is the number of changes that are kept. 0 switches the cache off.
	CacheSize int32 `json:"size"`
}

// APIServerRequests limits the requests that are handled at a time.
type APIServerRequests struct {
	// MaxNonMutatingInflight is the number of reading requests. Default: 400.
	// +optional
	MaxNonMutatingInflight *int32 `json:"maxNonMutatingInflight,omitempty"`
	// MaxMutatingInflight is the number of writing requests. Default: 200.
	// +optional
	MaxMutatingInflight *int32 `json:"maxMutatingInflight,omitempty"`
}

// APIServerLogging is the verbosity of logs.
type APIServerLogging struct {
	// Verbosity is the verbosity of logs. Default: 2.
	// +optional
	Verbosity *int32 `json:"verbosity,omitempty"`
	// HTTPAccessVerbosity is the verbosity of access logs.
	// +optional
	HTTPAccessVerbosity *int32 `json:"httpAccessVerbosity,omitempty"`
}

// EncryptionConfig defines what is encrypted in etcd, and how.
type EncryptionConfig struct {
	// Resources are the resources that are encrypted in addition to Secrets, as resource or resource.group.
	// +listType=atomic
	// +optional
	Resources []string `json:"resources,omitempty"`
	// Provider is how they are encrypted.
	Provider EncryptionProvider `json:"provider"`
}

// EncryptionProvider defines how objects are encrypted in etcd.
type EncryptionProvider struct {
	// Type is the kind of encryption. Default: aescbc.
	// +optional
	Type *EncryptionProviderType `json:"type,omitempty"`
}

// EncryptionProviderType is a kind of encryption.
// +enum
// +kubebuilder:validation:Enum=aescbc;aesgcm;secretbox
type EncryptionProviderType string

// The values of EncryptionProviderType.
const (
	// EncryptionProviderTypeAESCBC is AES in CBC mode.
	EncryptionProviderTypeAESCBC EncryptionProviderType = "aescbc"
	// EncryptionProviderTypeAESGCM is AES in GCM mode, which needs frequent rotation of the key.
	EncryptionProviderTypeAESGCM EncryptionProviderType = "aesgcm"
	// EncryptionProviderTypeSecretbox is XSalsa20 with Poly1305.
	EncryptionProviderTypeSecretbox EncryptionProviderType = "secretbox"
)

// StructuredAuthentication refers to an AuthenticationConfiguration.
type StructuredAuthentication struct {
	// ConfigMapName is the name of a ConfigMap with the configuration under the key config.yaml.
	ConfigMapName string `json:"configMapName"`
}

// StructuredAuthorization refers to an AuthorizationConfiguration.
type StructuredAuthorization struct {
	// ConfigMapName is the name of a ConfigMap with the configuration under the key config.yaml.
	ConfigMapName string `json:"configMapName"`
	// Kubeconfigs are the kubeconfigs that the webhooks of the configuration use.
	// +listType=map
	// +listMapKey=authorizerName
	// +patchMergeKey=authorizerName
	// +patchStrategy=merge
	Kubeconfigs []AuthorizerKubeconfigReference `json:"kubeconfigs" patchStrategy:"merge" patchMergeKey:"authorizerName"`
}

// AuthorizerKubeconfigReference refers to the kubeconfig of an authorization webhook.
type AuthorizerKubeconfigReference struct {
	// AuthorizerName is the name of the webhook in the configuration.
	AuthorizerName string `json:"authorizerName"`
	// SecretName is the name of a Secret with the kubeconfig.
	SecretName string `json:"secretName"`
}
