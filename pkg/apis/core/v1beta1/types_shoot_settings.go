package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
)

// Addons are components that can be installed into a cluster.
type Addons struct {
	// KubernetesDashboard is the Kubernetes dashboard.
	// +optional
	KubernetesDashboard *KubernetesDashboard `json:"kubernetesDashboard,omitempty"`
	// NginxIngress is an ingress controller on the basis of nginx.
	// +optional
	NginxIngress *NginxIngress `json:"nginxIngress,omitempty"`
}

// Addon defines whether a component is installed.
type Addon struct {
	// Enabled defines whether the component is installed.
	Enabled bool `json:"enabled"`
}

// KubernetesDashboard is the Kubernetes dashboard as an addon.
type KubernetesDashboard struct {
	Addon `json:",inline"`
	// AuthenticationMode is how users authenticate. Only token is known, which is the default.
	// +optional
	AuthenticationMode *string `json:"authenticationMode,omitempty"`
}

// NginxIngress is an ingress controller as an addon.
type NginxIngress struct {
	Addon `json:",inline"`
	// LoadBalancerSourceRanges are the ranges from which its load balancer accepts traffic, in CIDR notation.
	// +listType=atomic
	// +optional
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`
	// Config settings of nginx, which become a ConfigMap. They may have 1 MiB.
	// +optional
	Config map[string]string `json:"config,omitempty"`
	// ExternalTrafficPolicy is the policy for traffic from outside of the cluster. Default: Cluster.
	// +optional
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
}

// DNS is the domain of a cluster and the providers that manage it.
type DNS struct {
	// Domain is the domain of the cluster. It is immutable once set.
	// +optional
	Domain *string `json:"domain,omitempty"`
	// Providers are the providers that manage DNS records. One of them may be the primary one.
	// +listType=atomic
	// +optional
	Providers []DNSProvider `json:"providers,omitempty"`
}

// DNSProvider is an account with a DNS service.
type DNSProvider struct {
	// Domains selects the domains that the provider manages.
	// +optional
	Domains *DNSIncludeExclude `json:"domains,omitempty"`
	// Primary defines whether the provider manages the domain of the cluster.
	// +optional
	Primary *bool `json:"primary,omitempty"`
	// SecretName is the name of a Secret with credentials. Deprecated: use credentialsRef. It is forbidden from Kubernetes
	// 1.35 on.
	// +optional
	SecretName *string `json:"secretName,omitempty"`
	// Type is the type of the DNS service. The type unmanaged stands for a domain without records.
	// +optional
	Type *string `json:"type,omitempty"`
	// Zones selects the zones that the provider manages.
	// +optional
	Zones *DNSIncludeExclude `json:"zones,omitempty"`
	// CredentialsRef refers to the credentials, in the namespace of the Shoot: a Secret, an InternalSecret or a
	// WorkloadIdentity.
	// +optional
	CredentialsRef *autoscalingv1.CrossVersionObjectReference `json:"credentialsRef,omitempty"`
}

// DNSIncludeExclude selects domains or zones.
type DNSIncludeExclude struct {
	// Include is what is selected.
	// +listType=atomic
	// +optional
	Include []string `json:"include,omitempty"`
	// Exclude is what is left out of the selection.
	// +listType=atomic
	// +optional
	Exclude []string `json:"exclude,omitempty"`
}

// Hibernation defines whether and when a cluster is switched off.
type Hibernation struct {
	// Enabled defines whether the cluster is hibernated.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Schedules define when the cluster is switched off and on.
	// +listType=atomic
	// +optional
	Schedules []HibernationSchedule `json:"schedules,omitempty"`
}

// HibernationSchedule defines when a cluster is switched off and on. It has a start, an end or both.
type HibernationSchedule struct {
	// Start when the cluster is switched off, as a cron expression with five fields.
	// +optional
	Start *string `json:"start,omitempty"`
	// End when the cluster is switched on, as a cron expression with five fields.
	// +optional
	End *string `json:"end,omitempty"`
	// Location is the IANA time zone of both. Default: UTC.
	// +optional
	Location *string `json:"location,omitempty"`
}

// Monitoring holds the settings of monitoring.
type Monitoring struct {
	// Alerting holds the settings of alerting.
	// +optional
	Alerting *Alerting `json:"alerting,omitempty"`
}

// Alerting holds the settings of alerting.
type Alerting struct {
	// EmailReceivers are the addresses to which alerts are sent.
	// +listType=atomic
	// +optional
	EmailReceivers []string `json:"emailReceivers,omitempty"`
}

// SystemComponents holds the settings of components that run in a cluster for its own sake.
type SystemComponents struct {
	// CoreDNS holds the settings of CoreDNS.
	// +optional
	CoreDNS *CoreDNS `json:"coreDNS,omitempty"`
	// NodeLocalDNS holds the settings of the DNS cache on each node.
	// +optional
	NodeLocalDNS *NodeLocalDNS `json:"nodeLocalDNS,omitempty"`
}

// CoreDNS holds the settings of CoreDNS.
type CoreDNS struct {
	// Autoscaling defines how CoreDNS is scaled.
	// +optional
	Autoscaling *CoreDNSAutoscaling `json:"autoscaling,omitempty"`
	// Rewriting defines which names are rewritten.
	// +optional
	Rewriting *CoreDNSRewriting `json:"rewriting,omitempty"`
}

// CoreDNSAutoscaling defines how CoreDNS is scaled.
type CoreDNSAutoscaling struct {
	// Mode is how CoreDNS is scaled. Default: horizontal.
	Mode CoreDNSAutoscalingMode `json:"mode"`
}

// CoreDNSAutoscalingMode is how CoreDNS is scaled.
// +enum
// +kubebuilder:validation:Enum=horizontal;cluster-proportional
type CoreDNSAutoscalingMode string

// The values of CoreDNSAutoscalingMode.
const (
	// CoreDNSAutoscalingModeHorizontal scales by load.
	CoreDNSAutoscalingModeHorizontal CoreDNSAutoscalingMode = "horizontal"
	// CoreDNSAutoscalingModeClusterProportional scales by the size of the cluster.
	CoreDNSAutoscalingModeClusterProportional CoreDNSAutoscalingMode = "cluster-proportional"
)

// CoreDNSRewriting defines which names CoreDNS rewrites.
type CoreDNSRewriting struct {
	// CommonSuffixes are the suffixes that search domains may have been appended to by mistake, such as gardener.cloud.
	// +listType=atomic
	// +optional
	CommonSuffixes []string `json:"commonSuffixes,omitempty"`
}

// NodeLocalDNS holds the settings of the DNS cache on each node.
type NodeLocalDNS struct {
	// Enabled defines whether the cache is installed.
	Enabled bool `json:"enabled"`
	// ForceTCPToClusterDNS defines whether the cache asks the DNS service of the cluster by TCP. In effect without a value:
	// true.
	// +optional
	ForceTCPToClusterDNS *bool `json:"forceTCPToClusterDNS,omitempty"`
	// ForceTCPToUpstreamDNS defines whether the cache asks other DNS servers by TCP. In effect without a value: true.
	// +optional
	ForceTCPToUpstreamDNS *bool `json:"forceTCPToUpstreamDNS,omitempty"`
	// DisableForwardToUpstreamDNS defines whether the cache asks the DNS service of the cluster for all names. In effect
	// without a value: false.
	// +optional
	DisableForwardToUpstreamDNS *bool `json:"disableForwardToUpstreamDNS,omitempty"`
}

// ControlPlane holds the settings of a control plane.
type ControlPlane struct {
	// HighAvailability defines which failures the control plane survives.
	// +optional
	HighAvailability *HighAvailability `json:"highAvailability,omitempty"`
	// Zones are the zones that the control plane is pinned to, which the CloudProfile has to allow.
	// +listType=atomic
	// +optional
	Zones []string `json:"zones,omitempty"`
}

// HighAvailability defines which failures a control plane survives.
type HighAvailability struct {
	// FailureTolerance is the kind of failure that the control plane survives.
	FailureTolerance FailureTolerance `json:"failureTolerance"`
}

// FailureTolerance is the kind of failure that a control plane survives.
type FailureTolerance struct {
	// Type is the kind of failure. It is immutable once the control plane is scheduled.
	Type FailureToleranceType `json:"type"`
}

// FailureToleranceType is a kind of failure.
// +enum
// +kubebuilder:validation:Enum=node;zone
type FailureToleranceType string

// The values of FailureToleranceType.
const (
	// FailureToleranceTypeNode is the failure of a node.
	FailureToleranceTypeNode FailureToleranceType = "node"
	// FailureToleranceTypeZone is the failure of a zone.
	FailureToleranceTypeZone FailureToleranceType = "zone"
)
