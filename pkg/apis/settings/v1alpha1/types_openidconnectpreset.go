package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpenIDConnectPreset is an OpenID Connect configuration for the new Shoots of a project.
// +kubebuilder:object:root=true
type OpenIDConnectPreset struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec OpenIDConnectPresetSpec `json:"spec"`
}

// OpenIDConnectPresetList is a list of OpenIDConnectPreset objects.
// +kubebuilder:object:root=true
type OpenIDConnectPresetList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []OpenIDConnectPreset `json:"items"`
}

// OpenIDConnectPresetSpec is the desired state of an OpenIDConnectPreset.
type OpenIDConnectPresetSpec struct {
	// Server is the configuration of kube-apiserver.
	Server KubeAPIServerOpenIDConnect `json:"server"`
	// ShootSelector selects Shoots by their labels. Default: all.
	// +optional
	ShootSelector *metav1.LabelSelector `json:"shootSelector,omitempty"`
	// Weight is the weight of the preset, from 1 to 100. The highest one wins.
	Weight int32 `json:"weight"`
}

// ClusterOpenIDConnectPreset is an OpenID Connect configuration for the new Shoots of many projects.
// +kubebuilder:object:root=true
type ClusterOpenIDConnectPreset struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec ClusterOpenIDConnectPresetSpec `json:"spec"`
}

// ClusterOpenIDConnectPresetList is a list of ClusterOpenIDConnectPreset objects.
// +kubebuilder:object:root=true
type ClusterOpenIDConnectPresetList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ClusterOpenIDConnectPreset `json:"items"`
}

// ClusterOpenIDConnectPresetSpec is the desired state of a ClusterOpenIDConnectPreset.
type ClusterOpenIDConnectPresetSpec struct {
	OpenIDConnectPresetSpec `json:",inline"`
	// ProjectSelector selects Projects by their labels. Default: all.
	// +optional
	ProjectSelector *metav1.LabelSelector `json:"projectSelector,omitempty"`
}

// KubeAPIServerOpenIDConnect is the OpenID Connect configuration of kube-apiserver.
type KubeAPIServerOpenIDConnect struct {
	// CABundle is the certificates, in PEM format, that the issuer's certificate is checked with.
	// +optional
	CABundle *string `json:"caBundle,omitempty"`
	// ClientID is the client that tokens must be issued for.
	ClientID string `json:"clientID"`
	// GroupsClaim is the claim with the groups of the user.
	// +optional
	GroupsClaim *string `json:"groupsClaim,omitempty"`
	// GroupsPrefix is the prefix that groups get.
	// +optional
	GroupsPrefix *string `json:"groupsPrefix,omitempty"`
	// IssuerURL is the URL of the issuer.
	IssuerURL string `json:"issuerURL"`
	// RequiredClaims are the claims that tokens must have, with their values.
	// +optional
	RequiredClaims map[string]string `json:"requiredClaims,omitempty"`
	// SigningAlgs are the signature algorithms that are accepted. Default: RS256.
	// +listType=atomic
	// +optional
	SigningAlgs []string `json:"signingAlgs,omitempty"`
	// UsernameClaim is the claim with the name of the user. Default: sub.
	// +optional
	UsernameClaim *string `json:"usernameClaim,omitempty"`
	// UsernamePrefix is the prefix that names of users get.
	// +optional
	UsernamePrefix *string `json:"usernamePrefix,omitempty"`
}
