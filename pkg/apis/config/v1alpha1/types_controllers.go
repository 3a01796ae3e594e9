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

// ControllersConfiguration configures the controllers, which run in the leader.
type ControllersConfiguration struct {
	// ClusterID becomes part of the origin annotation, which names the owner of an object. In addition to plain texts,
	// "<cluster>" and "<default>" read it from the ConfigMap kube-system/cluster-identity of the source cluster. Default:
	// empty. Rule: not nil.
	// +optional
	ClusterID *string `json:"clusterID,omitempty"`
	// ResourceClass is the class of the handled ManagedResources. Default: "resources". Rule: not empty.
	// +optional
	ResourceClass *string `json:"resourceClass,omitempty"`
	// CacheSyncTimeout is how long a controller waits for its caches at startup. Default: 2m.
	// +optional
	CacheSyncTimeout *metav1.Duration `json:"cacheSyncTimeout,omitempty"`
	// GarbageCollector deletes unreferenced immutable Secrets and ConfigMaps.
	GarbageCollector GarbageCollectorConfiguration `json:"garbageCollector"`
	// Health checks the applied objects.
	Health HealthConfiguration `json:"health"`
	// CSRApprover approves the certificate requests of kubelets and node agents.
	CSRApprover CSRApproverConfiguration `json:"csrApprover"`
	// ManagedResource applies the objects of ManagedResources. Parse also accepts the spelling managedResources, which the
	// documents use and gardener-resource-manager ignores (Trellis).
	ManagedResource ManagedResourceConfiguration `json:"managedResource"`
	// IstioClusterConfiguration configures Istio's ingress gateways based on DestinationRules. Default for
	// concurrentSyncs: 5 if enabled.
	IstioClusterConfiguration OptionalController `json:"istioClusterConfiguration"`
	// NetworkPolicy creates network policies for Services.
	NetworkPolicy NetworkPolicyConfiguration `json:"networkPolicy"`
	// NodeCriticalComponents removes the taint from nodes whose critical components are ready.
	NodeCriticalComponents NodeCriticalComponentsConfiguration `json:"nodeCriticalComponents"`
	// NodeAgentReconciliationDelay spreads the node agents' work over time.
	NodeAgentReconciliationDelay NodeAgentReconciliationDelayConfiguration `json:"nodeAgentReconciliationDelay"`
	// TokenRequestor maintains tokens for the target's ServiceAccounts in Secrets of the source.
	TokenRequestor TokenRequestorConfiguration `json:"tokenRequestor"`
	// TokenInvalidator invalidates the static tokens of ServiceAccounts; it belongs to the webhook of the same
	// name. Default for concurrentSyncs: 5 if enabled.
	TokenInvalidator OptionalController `json:"tokenInvalidator"`
}

// OptionalController is a controller that runs only if it is enabled.
type OptionalController struct {
	// Enabled switches the controller on. Default: false.
	Enabled bool `json:"enabled"`
	// ConcurrentSyncs is the number of objects that are reconciled concurrently. Default and rule: see the field that has
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
	// ConcurrentSyncs is the number of ManagedResources that are reconciled concurrently. Default: 5. Rule: at least 1.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod is the time after which objects are checked again without an event. Default: 1m. Rule: at least 15s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// Checks replace the built-in health checks of their kinds. The spec of a ManagedResource can override them. Default:
	// none. Rule: see HealthCheck. This package does not know CEL, so the expressions are checked where they are compiled.
	// Trellis adds this field.
	// +optional
	Checks []resourcesv1alpha1.HealthCheck `json:"checks,omitempty"`
	// OtherKinds selects how results of kstatus are used for kinds without a check. FailuresOnly: an object is unhealthy
	// if kstatus reports Failed. FullStatus: in addition, it is progressing while kstatus reports InProgress. Default:
	// "FailuresOnly". Rule: one of FailuresOnly, FullStatus. Trellis adds this field.
	OtherKinds string `json:"otherKinds"`
	// ProgressingThreshold is the time after which an unfinished rollout counts as stuck, which makes ResourcesHealthy
	// False. Default: nil, which means never. Rule: nil or above 0. Trellis adds this field.
	// +optional
	ProgressingThreshold *metav1.Duration `json:"progressingThreshold,omitempty"`
}

// CSRApproverConfiguration configures the approver of certificate signing requests.
// Default for concurrentSyncs: 1 if enabled. Rule: at least 1 if enabled.
type CSRApproverConfiguration struct {
	OptionalController `json:",inline"`

	// MachineNamespace is the namespace in the source cluster with the Machines that requests are checked against.
	// Default: nil. Rule: nil or not empty if enabled.
	// +optional
	MachineNamespace *string `json:"machineNamespace,omitempty"`
}

// ManagedResourceConfiguration configures the controller that applies the objects of ManagedResources.
type ManagedResourceConfiguration struct {
	// ConcurrentSyncs is the number of ManagedResources that are reconciled concurrently. Default: 5. Rule: at least 1.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod is the time after which a ManagedResource is reconciled again without an event. Default: 1m. Rule: at
	// least 15s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// AlwaysUpdate writes every object at every reconcile, even if it is unchanged. Default: false.
	// +optional
	AlwaysUpdate *bool `json:"alwaysUpdate,omitempty"`
	// ManagedByLabelValue is the value of the label resources.gardener.cloud/managed-by on every applied object.
	// Default: "gardener". Rule: not empty.
	// +optional
	ManagedByLabelValue *string `json:"managedByLabelValue,omitempty"`
	// MaxSecretSize is the maximum total size in bytes of the decompressed manifests of one Secret. It prevents a small
	// compressed Secret from exhausting the memory. Default: 64Mi. Rule: above 0, at most 1Gi. Trellis adds this field.
	// +optional
	MaxSecretSize *resource.Quantity `json:"maxSecretSize,omitempty"`
	// KeepFieldsOf are names of field managers whose additions to applied objects are kept, in addition to the built-in
	// ones (docs/drift.md). One "*" in a name matches any text. Default: empty. Rule: no empty names, no name "*", at most
	// one "*" per name. Trellis adds this field.
	// +optional
	KeepFieldsOf []string `json:"keepFieldsOf,omitempty"`
	// FieldValidation selects how objects with fields that the API server does not know are handled. Warn: the object is
	// applied without them, and the condition names them. Strict: it is not applied. Default: "Warn". Rule: one of Warn,
	// Strict. Trellis adds this field.
	FieldValidation string `json:"fieldValidation"`
	// NamespaceServiceAccounts lets Namespaces determine the ServiceAccounts of their ManagedResources: if a Namespace has
	// the annotation resources.gardener.cloud/service-account-name, its ManagedResources are applied as this ServiceAccount
	// of the namespace, and those that name another one are refused. Use it only if the source is also the target
	// cluster. Default: false. Trellis adds this field.
	NamespaceServiceAccounts bool `json:"namespaceServiceAccounts"`
}

// NetworkPolicyConfiguration configures the NetworkPolicy controller.
// Default for concurrentSyncs: 5 if enabled.
type NetworkPolicyConfiguration struct {
	OptionalController `json:",inline"`

	// NamespaceSelectors select the namespaces whose Services are handled. A namespace must match at least one of them.
	// Default: empty, which means all. Rule: valid label selectors (Kubernetes).
	// +optional
	NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors,omitempty"`
	// IngressControllerSelector selects the pods of the ingress controller, which get access to the Services in Ingresses.
	// Default: nil.
	// +optional
	IngressControllerSelector *IngressControllerSelector `json:"ingressControllerSelector,omitempty"`
	// OnlyWhilePodsExist creates policies for Pods with a certain label only while such Pods exist in their namespace, as
	// newer versions of gardener-resource-manager do. This requires a watch of Pods. Default: false. Trellis adds this
	// field.
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

	// Backoff is the time after which a node that was not ready is checked again. Default: 10s if enabled.
	// +optional
	Backoff *metav1.Duration `json:"backoff,omitempty"`
	// Namespaces are the namespaces whose DaemonSets and Pods may be critical components. With this restriction, a user
	// who may label Pods in other namespaces cannot block nodes. Default: empty, which means the namespaces of the
	// connection to the target cluster. Rule: no empty names. Trellis adds this field; newer versions of
	// gardener-resource-manager use only kube-system.
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
}

// TokenRequestorConfiguration configures the token requestor.
// Default for concurrentSyncs: 5 if enabled. Rule: at least 1 if enabled.
type TokenRequestorConfiguration struct {
	OptionalController `json:",inline"`

	// CleanUp deletes ServiceAccounts and Secrets of the target cluster that the token requestor created, once no Secret
	// of the source cluster references them. Default: false. Trellis adds this field.
	CleanUp bool `json:"cleanUp"`
	// ServiceAccountNamespaces are the namespaces of the target cluster in which tokens may be requested for
	// ServiceAccounts. Default: empty, which means all. Rule: names of namespaces if enabled. Trellis adds this field.
	// +optional
	ServiceAccountNamespaces []string `json:"serviceAccountNamespaces,omitempty"`
	// TargetSecretNamespaces are the namespaces of the target cluster in which tokens may be written to Secrets. Default:
	// empty, which means all. Rule: names of namespaces if enabled. Trellis adds this field.
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
	// KeepDelays keeps the delays of nodes when others join or leave, as long as they are spread evenly enough. Otherwise
	// all delays change each time. Default: false. Trellis adds this field.
	KeepDelays bool `json:"keepDelays"`
	// FirstNode lets one node of each worker pool apply a changed configuration before the others. It needs node agents of Trellis.
	// Default: false. Trellis adds this field.
	FirstNode bool `json:"firstNode"`
}
