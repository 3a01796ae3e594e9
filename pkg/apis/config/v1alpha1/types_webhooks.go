package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// WebhooksConfiguration configures the admission and authorization webhooks. Each is served only if it is enabled.
type WebhooksConfiguration struct {
	// CRDDeletionProtection rejects deletions of protected CRDs and custom resources without confirmation.
	CRDDeletionProtection OptionalWebhook `json:"crdDeletionProtection"`
	// EndpointSliceHints sets the hint of every endpoint to its own zone.
	EndpointSliceHints OptionalWebhook `json:"endpointSliceHints"`
	// ExtensionValidation validates the resources of extensions.
	ExtensionValidation OptionalWebhook `json:"extensionValidation"`
	// HighAvailabilityConfig sets replicas, spread constraints and tolerations.
	HighAvailabilityConfig HighAvailabilityConfigConfiguration `json:"highAvailabilityConfig"`
	// KubernetesServiceHost sets the environment variable KUBERNETES_SERVICE_HOST in pods.
	KubernetesServiceHost KubernetesServiceHostConfiguration `json:"kubernetesServiceHost"`
	// ManualDeletionProtection rejects manual deletions of ManagedResources of flows, namespaces of control planes and
	// persisted Secrets without confirmation.
	ManualDeletionProtection ManualDeletionProtectionConfiguration `json:"manualDeletionProtection"`
	// NodeAgentAuthorizer authorizes the node agents' requests.
	NodeAgentAuthorizer NodeAgentAuthorizerConfiguration `json:"nodeAgentAuthorizer"`
	// PodKubeAPIServerLoadBalancing sends pods' requests to the API server through its load balancer.
	PodKubeAPIServerLoadBalancing OptionalWebhook `json:"podKubeAPIServerLoadBalancing"`
	// PodSchedulerName sets the scheduler of pods.
	PodSchedulerName PodSchedulerNameConfiguration `json:"podSchedulerName"`
	// PodTopologySpreadConstraints makes spread constraints count only pods of the same template.
	PodTopologySpreadConstraints OptionalWebhook `json:"podTopologySpreadConstraints"`
	// ProjectedTokenMount mounts short-lived tokens into pods that do not mount a token themselves.
	ProjectedTokenMount ProjectedTokenMountConfiguration `json:"projectedTokenMount"`
	// SeccompProfile sets the profile RuntimeDefault in pods without a profile.
	SeccompProfile OptionalWebhook `json:"seccompProfile"`
	// SystemComponentsConfig schedules system components on the nodes for them.
	SystemComponentsConfig SystemComponentsConfigConfiguration `json:"systemComponentsConfig"`
	// TokenInvalidator invalidates the static tokens of ServiceAccounts, together with the controller of the same name.
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

	// DefaultNotReadyTolerationSeconds is how long pods stay on a node that is not ready, in seconds. Default: nil, which
	// adds no toleration. Rule: at least 0.
	// +optional
	DefaultNotReadyTolerationSeconds *int64 `json:"defaultNotReadyTolerationSeconds,omitempty"`
	// DefaultUnreachableTolerationSeconds is how long pods stay on an unreachable node, in seconds. Default: nil, which
	// adds no toleration. Rule: at least 0.
	// +optional
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty"`
}

// KubernetesServiceHostConfiguration configures the webhook that sets KUBERNETES_SERVICE_HOST.
type KubernetesServiceHostConfiguration struct {
	OptionalWebhook `json:",inline"`

	// Host is the value of the variable. Default: empty.
	Host string `json:"host"`
}

// ManualDeletionProtectionConfiguration configures the webhook against manual deletions.
type ManualDeletionProtectionConfiguration struct {
	OptionalWebhook `json:",inline"`

	// AllowedUsers may delete without confirmation, in addition to kube-controller-manager: the programs whose flows emit
	// ManagedResources and persist Secrets, and the resource-manager. Default: the ServiceAccounts gardener-operator,
	// gardener-resource-manager and gardenlet of the namespace garden if enabled. Rule: no empty names if enabled.
	// +optional
	AllowedUsers []string `json:"allowedUsers,omitempty"`
	// AllowedGroups are groups whose members may delete without confirmation. Default: empty. Rule: no empty names if
	// enabled.
	// +optional
	AllowedGroups []string `json:"allowedGroups,omitempty"`
}

// NodeAgentAuthorizerConfiguration configures the authorization of node agents.
type NodeAgentAuthorizerConfiguration struct {
	OptionalWebhook `json:",inline"`

	// MachineNamespace is the namespace in the source cluster with the Machines of the nodes. Default: nil. Rule: nil or
	// not empty if enabled.
	// +optional
	MachineNamespace *string `json:"machineNamespace,omitempty"`
	// AuthorizeWithSelectors means that the API server sends field and label selectors in its authorization requests, so
	// that lists can be restricted to the objects of the node. Default: false.
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

	// ExpirationSeconds is the validity of a token in seconds. Default: 43200 (12 hours) if enabled. Rule: at least 600 if
	// enabled.
	// +optional
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
}

// SystemComponentsConfigConfiguration configures the webhook that schedules system components.
type SystemComponentsConfigConfiguration struct {
	OptionalWebhook `json:",inline"`

	// NodeSelector selects the nodes for system components; pods tolerate the taints of these nodes.
	// Default: empty.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// PodNodeSelector is merged into the node selector of the pods and takes precedence. Default: empty.
	// +optional
	PodNodeSelector map[string]string `json:"podNodeSelector,omitempty"`
	// PodTolerations are added to the tolerations of the pods. Default: empty. Rule: same as for a pod's tolerations in
	// the API server (Kubernetes).
	// +optional
	PodTolerations []corev1.Toleration `json:"podTolerations,omitempty"`
}
