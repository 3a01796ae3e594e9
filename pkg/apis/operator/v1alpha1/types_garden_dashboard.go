package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GardenerDashboardConfig holds the settings of the dashboard.
// +kubebuilder:validation:XValidation:rule="!has(self.enableTokenLogin) || self.enableTokenLogin || has(self.oidcConfig)",message="oidcConfig is required without enableTokenLogin"
type GardenerDashboardConfig struct {
	// EnableTokenLogin defines whether users can log in with a token. Default: true.
	// +optional
	// +kubebuilder:default=true
	EnableTokenLogin *bool `json:"enableTokenLogin,omitempty"`
	// FrontendConfigMapRef refers to a ConfigMap with settings of the pages.
	// +optional
	FrontendConfigMapRef *corev1.LocalObjectReference `json:"frontendConfigMapRef,omitempty"`
	// AssetsConfigMapRef refers to a ConfigMap with pictures.
	// +optional
	AssetsConfigMapRef *corev1.LocalObjectReference `json:"assetsConfigMapRef,omitempty"`
	// GitHub is the repository whose tickets are shown.
	// +optional
	GitHub *DashboardGitHub `json:"gitHub,omitempty"`
	// LogLevel is the level of logs. Default: info.
	// +optional
	// +kubebuilder:validation:Enum=trace;debug;info;warn;error
	// +kubebuilder:default=info
	LogLevel *string `json:"logLevel,omitempty"`
	// OIDCConfig defines how users log in with OpenID Connect.
	// +optional
	OIDCConfig *DashboardOIDC `json:"oidcConfig,omitempty"`
	// Terminal holds the settings of terminals.
	// +optional
	Terminal *DashboardTerminal `json:"terminal,omitempty"`
	// Ingress holds the settings of the Ingress.
	// +optional
	Ingress *DashboardIngress `json:"ingress,omitempty"`
	// Domain is the domain of the dashboard. Default: the name dashboard in each domain for Ingresses.
	// +optional
	Domain *DNSDomain `json:"domain,omitempty"`
	// TLSSecretName is the name of a Secret with the certificate of the dashboard.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	TLSSecretName *string `json:"tlsSecretName,omitempty"`
	// PropagateCAFromSNI defines whether kubeconfigs have the authority of the certificate for further names. In effect without
	// a value: false.
	// +optional
	PropagateCAFromSNI *bool `json:"propagateCAFromSNI,omitempty"`
}

// DashboardGitHub is a repository whose tickets are shown.
type DashboardGitHub struct {
	// APIURL is the URL of the API.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:default="https://api.github.com"
	APIURL string `json:"apiURL"`
	// Organisation is the organisation of the repository.
	// +kubebuilder:validation:MinLength=1
	Organisation string `json:"organisation"`
	// Repository is the name of the repository.
	// +kubebuilder:validation:MinLength=1
	Repository string `json:"repository"`
	// SecretRef refers to the Secret with the credentials.
	SecretRef corev1.LocalObjectReference `json:"secretRef"`
	// PollInterval is the interval between two queries of the tickets. In effect without a webhook: 15m.
	// +optional
	PollInterval *metav1.Duration `json:"pollInterval,omitempty"`
}

// DashboardOIDC defines how users log in with OpenID Connect.
// +kubebuilder:validation:XValidation:rule="has(self.issuerURL) && has(self.clientIDPublic)",message="issuerURL and clientIDPublic are required"
type DashboardOIDC struct {
	// ClientIDPublic is the client for command lines.
	// +optional
	ClientIDPublic *string `json:"clientIDPublic,omitempty"`
	// IssuerURL is the URL of the issuer.
	// +optional
	// +kubebuilder:validation:Pattern=`^https://[^/?#]+`
	IssuerURL *string `json:"issuerURL,omitempty"`
	// SessionLifetime is the time after which users have to log in again.
	// +optional
	SessionLifetime *metav1.Duration `json:"sessionLifetime,omitempty"`
	// AdditionalScopes are further scopes that are requested.
	// +listType=atomic
	// +optional
	AdditionalScopes []string `json:"additionalScopes,omitempty"`
	// SecretRef refers to the Secret with the client's credentials.
	SecretRef corev1.LocalObjectReference `json:"secretRef"`
	// CertificateAuthoritySecretRef refers to the Secret with the authority of the issuer's certificate.
	// +optional
	CertificateAuthoritySecretRef *corev1.LocalObjectReference `json:"certificateAuthoritySecretRef,omitempty"`
}

// DashboardTerminal holds the settings of terminals.
type DashboardTerminal struct {
	// Container is the container.
	Container DashboardTerminalContainer `json:"container"`
	// AllowedHosts are the hosts that terminals may reach.
	// +listType=atomic
	// +optional
	AllowedHosts []string `json:"allowedHosts,omitempty"`
}

// DashboardTerminalContainer is the container of a terminal.
type DashboardTerminalContainer struct {
	// Image is the image.
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`
	// Description describes what the image offers.
	// +optional
	Description *string `json:"description,omitempty"`
}

// DashboardIngress holds the settings of the Ingress.
type DashboardIngress struct {
	// Enabled defines whether there is an Ingress. Deprecated. Default: true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
}
