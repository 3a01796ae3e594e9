package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// WebhooksConfiguration configures the admission and authorization webhooks. Each is served only if it is enabled.
type WebhooksConfiguration struct {
	// CRDDeletionProtection refuses to delete protected CRDs and custom resources without confirmation.
	CRDDeletionProtection OptionalWebhook `json:"crdDeletionProtection"`
	// EndpointSliceHints gives every endpoint the hint of its own zone.
	EndpointSliceHints OptionalWebhook `json:"endpointSliceHints"`
	// ExtensionValidation validates the resources of extensions.
	ExtensionValidation OptionalWebhook `json:"extensionValidation"`
	// HighAvailabilityConfig sets replicas, spread constraints and tolerations.
	HighAvailabilityConfig HighAvailabilityConfigConfiguration `json:"highAvailabilityConfig"`
	// KubernetesServiceHost sets the variable KUBERNETES_SERVICE_HOST in pods.
	KubernetesServiceHost KubernetesServiceHostConfiguration `json:"kubernetesServiceHost"`
	// ManualDeletionProtection refuses to delete ManagedResources of flows, namespaces of control planes and persisted Secrets by hand
	// without confirmation.
	ManualDeletionProtection ManualDeletionProtectionConfiguration `json:"manualDeletionProtection"`
	// NodeAgentAuthorizer authorizes the node agents' requests.
	NodeAgentAuthorizer NodeAgentAuthorizerConfiguration `json:"nodeAgentAuthorizer"`
	// PodKubeAPIServerLoadBalancing sends pods' requests to the API server through its load balancer.
	PodKubeAPIServerLoadBalancing OptionalWebhook `json:"podKubeAPIServerLoadBalancing"`
	// PodSchedulerName sets the scheduler of pods.
	PodSchedulerName PodSchedulerNameConfiguration `json:"podSchedulerName"`
	// PodTopologySpreadConstraints counts only pods of the same template in spread constraints.
	PodTopologySpreadConstraints OptionalWebhook `json:"podTopologySpreadConstraints"`
	// ProjectedTokenMount mounts short-lived tokens into pods that mount none by themselves.
	ProjectedTokenMount ProjectedTokenMountConfiguration `json:"projectedTokenMount"`
	// SeccompProfile sets the profile RuntimeDefault in pods without one.
	SeccompProfile OptionalWebhook `json:"seccompProfile"`
	// SystemComponentsConfig places system components on the nodes that are meant for them.
	SystemComponentsConfig SystemComponentsConfigConfiguration `json:"systemComponentsConfig"`
	// TokenInvalidator invalidates the static tokens of ServiceAccounts together with the controller of that name.
	TokenInvalidator OptionalWebhook `json:"tokenInvalidator"`
	// VPAInPlaceUpdates lets vertical pod autoscalers resize pods in place.
	VPAInPlaceUpdates OptionalWebhook `json:"vpaInPlaceUpdates"`
}

// OptionalWebhook is a webhook that is served only if it is enabled.
type OptionalWebhook struct {
	// Enabled switches the webhook on. Default: false.
	Enabled bool `json:"enabled"`
}

// HighAvailabilityConfigConfiguration configures the webhook for highly available workloads.
type HighAvailabilityConfigConfiguration struct {
	OptionalWebhook `json:",inline"`

	// DefaultNotReadyTolerationSeconds is how many seconds pods stay on a node that is not ready.
	// Default: nil, which adds no toleration. Rule: at least 0.
	// +optional
	DefaultNotReadyTolerationSeconds *int64 `json:"defaultNotReadyTolerationSeconds,omitempty"`
	// DefaultUnreachableTolerationSeconds is how many seconds pods stay on a node that is unreachable.
	// Default: nil, which adds no toleration. Rule: at least 0.
	// +optional
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty"`
}

// KubernetesServiceHostConfiguration configures the webhook that sets KUBERNETES_SERVICE_HOST.
type KubernetesServiceHostConfiguration struct {
	OptionalWebhook `json:",inline"`

	// Host is the value of the variable. Default: empty.
	Host string `json:"host"`
}

// ManualDeletionProtectionConfiguration configures the webhook against deletions by hand.
type ManualDeletionProtectionConfiguration struct {
	OptionalWebhook `json:",inline"`

	// AllowedUsers may delete without a confirmation, beside kube-controller-manager: the programs whose flows emit ManagedResources and
	// keep Secrets, and the resource-manager. Default: the ServiceAccounts gardener-operator, gardener-resource-manager and gardenlet of
	// the namespace garden if enabled. Rule: no empty names if enabled.
	// +optional
	AllowedUsers []string `json:"allowedUsers,omitempty"`
	// AllowedGroups are groups of such users. Default: empty. Rule: no empty names if enabled.
	// +optional
	AllowedGroups []string `json:"allowedGroups,omitempty"`
}

// NodeAgentAuthorizerConfiguration configures the authorization of node agents.
type NodeAgentAuthorizerConfiguration struct {
	OptionalWebhook `json:",inline"`

	// MachineNamespace is the source cluster's namespace of the Machines that belong to the nodes.
	// Default: nil. Rule: nil or not empty if enabled.
	// +optional
	MachineNamespace *string `json:"machineNamespace,omitempty"`
	// AuthorizeWithSelectors says that the API server sends field and label selectors in its authorization
	// requests, so that lists can be bound to what belongs to the node. Default: false.
	// +optional
	AuthorizeWithSelectors *bool `json:"authorizeWithSelectors,omitempty"`
}

// PodSchedulerNameConfiguration configures the webhook that sets the scheduler of pods.
type PodSchedulerNameConfiguration struct {
	OptionalWebhook `json:",inline"`

	// SchedulerName is the scheduler's name. Default: "default-scheduler" if enabled. Rule: not empty if enabled.
	// +optional
	SchedulerName *string `json:"schedulerName,omitempty"`
}

// ProjectedTokenMountConfiguration configures the webhook that mounts tokens.
type ProjectedTokenMountConfiguration struct {
	OptionalWebhook `json:",inline"`

	// ExpirationSeconds is how many seconds a token is valid. Default: 43200 (12 hours) if enabled.
	// Rule: at least 600 if enabled.
	// +optional
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
}

// SystemComponentsConfigConfiguration configures the webhook that places system components.
type SystemComponentsConfigConfiguration struct {
	OptionalWebhook `json:",inline"`

	// NodeSelector selects the nodes for system components; pods tolerate the taints of these nodes.
	// Default: empty.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// PodNodeSelector is added to the node selector of the pods, over which it wins. Default: empty.
	// +optional
	PodNodeSelector map[string]string `json:"podNodeSelector,omitempty"`
	// PodTolerations are added to the tolerations of the pods. Default: empty. Rule: those that the API server
	// has for a pod's tolerations (Kubernetes).
	// +optional
	PodTolerations []corev1.Toleration `json:"podTolerations,omitempty"`
}
