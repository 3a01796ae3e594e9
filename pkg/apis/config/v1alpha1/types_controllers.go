package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// The values of controllers.health.otherKinds.
const (
	OtherKindsFailuresOnly = "FailuresOnly"
	OtherKindsFullStatus   = "FullStatus"
)

// The values of controllers.managedResource.fieldValidation.
const (
	FieldValidationWarn   = "Warn"
	FieldValidationStrict = "Strict"
)

// ControllersConfiguration configures what runs on the leader.
type ControllersConfiguration struct {
	// ClusterID becomes part of the origin annotation, which says who owns an object. Besides a plain text,
	// "<cluster>" and "<default>" take it from the ConfigMap kube-system/cluster-identity of the source cluster.
	// Default: empty. Rule: not nil.
	// +optional
	ClusterID *string `json:"clusterID,omitempty"`
	// ResourceClass is the class of ManagedResources that are handled. Default: "resources". Rule: not empty.
	// +optional
	ResourceClass *string `json:"resourceClass,omitempty"`
	// CacheSyncTimeout is how long a controller waits at its start for its caches. Default: 2m.
	// +optional
	CacheSyncTimeout *metav1.Duration `json:"cacheSyncTimeout,omitempty"`
	// GarbageCollector deletes immutable Secrets and ConfigMaps that nothing refers to any more.
	GarbageCollector GarbageCollectorConfiguration `json:"garbageCollector"`
	// Health checks the applied objects.
	Health HealthConfiguration `json:"health"`
	// CSRApprover approves the certificate requests of kubelets and node agents.
	CSRApprover CSRApproverConfiguration `json:"csrApprover"`
	// ManagedResource applies the objects of ManagedResources. Parse also accepts the spelling
	// managedResources, which the documents use and gardener-resource-manager ignores (Trellis).
	ManagedResource ManagedResourceConfiguration `json:"managedResource"`
	// IstioClusterConfiguration configures Istio's ingress gateways by DestinationRules.
	// Default for concurrentSyncs: 5 if enabled.
	IstioClusterConfiguration OptionalController `json:"istioClusterConfiguration"`
	// NetworkPolicy derives network policies from Services.
	NetworkPolicy NetworkPolicyConfiguration `json:"networkPolicy"`
	// NodeCriticalComponents takes the taint off nodes whose critical components are ready.
	NodeCriticalComponents NodeCriticalComponentsConfiguration `json:"nodeCriticalComponents"`
	// NodeAgentReconciliationDelay spreads the node agents' work over time.
	NodeAgentReconciliationDelay NodeAgentReconciliationDelayConfiguration `json:"nodeAgentReconciliationDelay"`
	// TokenRequestor keeps tokens of the target's ServiceAccounts in Secrets of the source.
	TokenRequestor TokenRequestorConfiguration `json:"tokenRequestor"`
	// TokenInvalidator invalidates the static tokens of ServiceAccounts; it belongs to the webhook of the same
	// name. Default for concurrentSyncs: 5 if enabled.
	TokenInvalidator OptionalController `json:"tokenInvalidator"`
}

// OptionalController is a controller that runs only if it is enabled.
type OptionalController struct {
	// Enabled switches the controller on. Default: false.
	Enabled bool `json:"enabled"`
	// ConcurrentSyncs is how many objects are worked on at a time. Default and rule: see the field that has
	// this type; nil unless enabled.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// GarbageCollectorConfiguration configures the garbage collector.
type GarbageCollectorConfiguration struct {
	// Enabled switches the controller on. Default: false.
	Enabled bool `json:"enabled"`
	// SyncPeriod is the time between two collections. Default: 1h if enabled. Rule: at least 15s if enabled.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// HealthConfiguration configures the health controllers.
type HealthConfiguration struct {
	// ConcurrentSyncs is how many ManagedResources are worked on at a time. Default: 5. Rule: at least 1.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod is the time after which objects are checked although nothing was seen to change.
	// Default: 1m. Rule: at least 15s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// Checks replace the built-in health checks of their kinds, and may themselves be replaced by the spec of a
	// ManagedResource. Default: none. Rule: see HealthCheck; as this package knows no CEL, the expressions are
	// checked where they are compiled. Trellis adds this field.
	// +optional
	Checks []resourcesv1alpha1.HealthCheck `json:"checks,omitempty"`
	// OtherKinds says how far kstatus is trusted with the kinds that have no check. FailuresOnly: their objects are
	// unhealthy if it says Failed. FullStatus: they are also progressing while it says InProgress.
	// Default: "FailuresOnly". Rule: one of FailuresOnly, FullStatus. Trellis adds this field.
	OtherKinds string `json:"otherKinds"`
	// ProgressingThreshold is the time after which a rollout that is still going on counts as stuck, which makes
	// ResourcesHealthy False. Default: nil, which means never. Rule: nil or above 0. Trellis adds this field.
	// +optional
	ProgressingThreshold *metav1.Duration `json:"progressingThreshold,omitempty"`
}

// CSRApproverConfiguration configures the approver of certificate signing requests.
// Default for concurrentSyncs: 1 if enabled. Rule: at least 1 if enabled.
type CSRApproverConfiguration struct {
	OptionalController `json:",inline"`

	// MachineNamespace is the source cluster's namespace of the Machines against which requests are checked.
	// Default: nil. Rule: nil or not empty if enabled.
	// +optional
	MachineNamespace *string `json:"machineNamespace,omitempty"`
}

// ManagedResourceConfiguration configures the controller that applies the objects of ManagedResources.
type ManagedResourceConfiguration struct {
	// ConcurrentSyncs is how many ManagedResources are worked on at a time. Default: 5. Rule: at least 1.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod is the time after which a ManagedResource is reconciled although nothing was seen to change.
	// Default: 1m. Rule: at least 15s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// AlwaysUpdate sends every object at every reconcile, even if nothing has to be changed. Default: false.
	// +optional
	AlwaysUpdate *bool `json:"alwaysUpdate,omitempty"`
	// ManagedByLabelValue is the value of the label resources.gardener.cloud/managed-by on every applied object.
	// Default: "gardener". Rule: not empty.
	// +optional
	ManagedByLabelValue *string `json:"managedByLabelValue,omitempty"`
	// MaxSecretSize is how many bytes all manifests of one Secret may have together once they are decompressed;
	// it keeps a small compressed Secret from filling the memory. Default: 64Mi. Rule: above 0, at most 1Gi.
	// Trellis adds this field.
	// +optional
	MaxSecretSize *resource.Quantity `json:"maxSecretSize,omitempty"`
	// KeepFieldsOf are names of field managers whose additions to applied objects are kept, beside the built-in ones
	// (docs/drift.md). One "*" in a name stands for any text. Default: empty. Rule: no empty names, none that is "*", at most one "*" in
	// each. Trellis adds this field.
	// +optional
	KeepFieldsOf []string `json:"keepFieldsOf,omitempty"`
	// FieldValidation says what becomes of an object with fields that the API server does not know. Warn: it is applied without
	// them, and the condition names them. Strict: it is not applied. Default: "Warn". Rule: one of Warn, Strict. Trellis adds this field.
	FieldValidation string `json:"fieldValidation"`
}

// NetworkPolicyConfiguration configures the NetworkPolicy controller.
// Default for concurrentSyncs: 5 if enabled.
type NetworkPolicyConfiguration struct {
	OptionalController `json:",inline"`

	// NamespaceSelectors select the namespaces whose Services are handled: those that match any of them.
	// Default: empty, which means all. Rule: valid label selectors (Kubernetes).
	// +optional
	NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors,omitempty"`
	// IngressControllerSelector selects the pods of the ingress controller, which are to reach the Services that
	// Ingresses name. Default: nil.
	// +optional
	IngressControllerSelector *IngressControllerSelector `json:"ingressControllerSelector,omitempty"`
	// OnlyWhilePodsExist has policies that matter to Pods with a certain label only while there are such Pods in their
	// namespace, as newer versions of gardener-resource-manager do. Pods are watched for that. Default: false.
	// Trellis adds this field.
	// +optional
	OnlyWhilePodsExist bool `json:"onlyWhilePodsExist,omitempty"`
}

// IngressControllerSelector selects the pods of an ingress controller.
type IngressControllerSelector struct {
	// Namespace is the namespace of the ingress controller. Default: empty.
	Namespace string `json:"namespace"`
	// PodSelector selects its pods. Default: empty. Rule: a valid label selector (Kubernetes).
	PodSelector metav1.LabelSelector `json:"podSelector"`
}

// NodeCriticalComponentsConfiguration configures the controller for nodes' critical components.
// Default for concurrentSyncs: 5 if enabled.
type NodeCriticalComponentsConfiguration struct {
	OptionalController `json:",inline"`

	// Backoff is the time after which a node that was not ready is looked at again. Default: 10s if enabled.
	// +optional
	Backoff *metav1.Duration `json:"backoff,omitempty"`
	// Namespaces are those whose DaemonSets and Pods may be critical components. A user who may label Pods elsewhere then cannot
	// keep nodes from being used. Default: empty, which means those of the connection to the target cluster. Rule: no empty
	// names. Trellis adds this field; newer versions of gardener-resource-manager look at kube-system alone.
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
}

// TokenRequestorConfiguration configures the token requestor.
// Default for concurrentSyncs: 5 if enabled. Rule: at least 1 if enabled.
type TokenRequestorConfiguration struct {
	OptionalController `json:",inline"`

	// CleanUp deletes ServiceAccounts and Secrets of the target cluster that the token requestor created, once no Secret of
	// the source cluster names them. Default: false. Trellis adds this field.
	CleanUp bool `json:"cleanUp"`
	// ServiceAccountNamespaces are the namespaces of the target cluster of whose ServiceAccounts tokens are requested.
	// Default: empty, which means all. Rule: names of namespaces if enabled. Trellis adds this field.
	// +optional
	ServiceAccountNamespaces []string `json:"serviceAccountNamespaces,omitempty"`
	// TargetSecretNamespaces are the namespaces of the target cluster into whose Secrets tokens are written.
	// Default: empty, which means all. Rule: names of namespaces if enabled. Trellis adds this field.
	// +optional
	TargetSecretNamespaces []string `json:"targetSecretNamespaces,omitempty"`
}

// NodeAgentReconciliationDelayConfiguration configures the controller that spreads the node agents' work.
type NodeAgentReconciliationDelayConfiguration struct {
	// Enabled switches the controller on. Default: false.
	Enabled bool `json:"enabled"`
	// MinDelay is the delay of the first node. Default: 0s if enabled. Rule: at least 0s, at most maxDelay.
	// +optional
	MinDelay *metav1.Duration `json:"minDelay,omitempty"`
	// MaxDelay is the delay of the last node. Default: 5m if enabled. Rule: at least 0s.
	// +optional
	MaxDelay *metav1.Duration `json:"maxDelay,omitempty"`
	// KeepDelays leaves the delays of nodes as they are when others join or leave, as long as they are spread evenly enough.
	// Otherwise all of them change each time. Default: false. Trellis adds this field.
	KeepDelays bool `json:"keepDelays"`
}
