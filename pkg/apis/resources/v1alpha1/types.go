package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ManagedResource references Secrets that contain manifests, and reports the state of the objects in these manifests.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mr,scope=Namespaced,path=managedresources,singular=managedresource
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class`,description="The class of resource-managers that is responsible."
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesApplied")].status`,description="Whether all objects are applied."
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesHealthy")].status`,description="Whether all objects are present and healthy."
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesProgressing")].status`,description="Whether an object is still being rolled out."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcesApplied")].reason`,description="Why the objects are (not) applied."
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcesApplied")].message`,description="The result of the last apply."
type ManagedResource struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state: the manifests, and how they are applied.
	// +optional
	Spec ManagedResourceSpec `json:"spec,omitempty"`
	// Status is the observed state: the objects that were applied, and their health. The default observedGeneration of -1
	// makes tools such as Flux wait for the first reconcile.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ManagedResourceStatus `json:"status,omitempty"`
}

// ManagedResourceList is a list of ManagedResources.
//
// +kubebuilder:object:root=true
type ManagedResourceList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// The ManagedResources.
	Items []ManagedResource `json:"items"`
}

// ManagedResourceSpec selects the manifests, and defines how and by which resource-manager they are applied.
type ManagedResourceSpec struct {
	// Class selects the resource-manager that is responsible. The default class is used if it is unset or empty.
	// +optional
	Class *string `json:"class,omitempty"`
	// SecretRefs names Secrets in the namespace of the ManagedResource. Each data key contains manifests. A key that ends
	// in ".br" is decompressed with Brotli first.
	SecretRefs []LocalObjectReference `json:"secretRefs"`
	// InjectLabels are added to every object, to pod templates and to volume claim templates.
	// +optional
	InjectLabels map[string]string `json:"injectLabels,omitempty"`
	// ForceOverwriteLabels removes labels that others added to the objects. Default: false.
	// +optional
	ForceOverwriteLabels *bool `json:"forceOverwriteLabels,omitempty"`
	// ForceOverwriteAnnotations removes annotations that others added to the objects. Default: false.
	// +optional
	ForceOverwriteAnnotations *bool `json:"forceOverwriteAnnotations,omitempty"`
	// KeepObjects leaves the objects in place when the ManagedResource is deleted or its class changes. It has no effect
	// on objects that are removed from the manifests. Default: false.
	// +optional
	KeepObjects *bool `json:"keepObjects,omitempty"`
	// Equivalences are sets of kinds. Objects with the same name whose kinds are in one set are treated as the same
	// object, so that an object can move between API groups without being deleted.
	// +optional
	Equivalences [][]GroupKind `json:"equivalences,omitempty"`
	// DeletePersistentVolumeClaims deletes the PersistentVolumeClaims of a StatefulSet together with it. Default: false.
	// +optional
	DeletePersistentVolumeClaims *bool `json:"deletePersistentVolumeClaims,omitempty"`
	// ServiceAccountName is the ServiceAccount of the target cluster that is impersonated to write and delete the objects,
	// so that the permissions of the ManagedResource are those of the ServiceAccount. It is "<namespace>/<name>", or a
	// name in the namespace of the ManagedResource. Default: the resource-manager's own identity.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// DependsOn names ManagedResources that must be applied and healthy before this one, or a change of it, is applied.
	// Objects that are applied already stay unchanged, even if a dependency fails later. The operation "reconcile" applies
	// a change without waiting.
	// +optional
	// +listType=atomic
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// DeleteAfter names ManagedResources that must no longer exist before the objects of this one are deleted with it. It
	// replaces the default, which is to wait for the dependents of this ManagedResource. With an empty list, the deletion
	// does not wait.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	DeleteAfter []ManagedResourceReference `json:"deleteAfter,omitzero"`
	// Prune limits how many objects are deleted at once. If it is unset, all objects that were removed from the manifests
	// are deleted.
	// +optional
	Prune *PruneGuard `json:"prune,omitempty"`
	// DriftDetection selects changes to the objects that are not reverted. Default: all changes are reverted.
	// +optional
	DriftDetection *DriftDetection `json:"driftDetection,omitempty"`
	// StatusOnCreation selects objects whose status is part of the manifests. The status is applied once, through the
	// status subresource, right after the object is created with the annotation gardener.cloud/operation=wait-for-state.
	// Fields of the status that other clients have set are not changed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	StatusOnCreation []ObjectSelector `json:"statusOnCreation,omitempty"`
	// HealthChecks define when objects of additional kinds are healthy. For this ManagedResource, a check replaces the
	// built-in check of its kind and the one in the resource-manager's configuration. A kind has at most one check.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	HealthChecks []HealthCheck `json:"healthChecks,omitempty"`
}

// HealthCheck defines with CEL expressions when objects of a kind are healthy. The expressions can use the variables
// object (the whole object), metadata, spec and status. They yield a boolean unless documented otherwise. At least one
// of healthy, progressing and failed is required. Secrets of the core group cannot be checked, because their data is
// never read.
//
// +kubebuilder:validation:XValidation:rule="has(self.healthy) || has(self.progressing) || has(self.failed)",message="at least one of healthy, progressing and failed is needed"
type HealthCheck struct {
	// Group of the objects; empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// Kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Healthy is true if the object is healthy. Default: the object is healthy unless failed is true.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Healthy string `json:"healthy,omitempty"`
	// Progressing is true while the object is being rolled out. Default: never.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Progressing string `json:"progressing,omitempty"`
	// Failed is true if the object failed: it is unhealthy, and no rollout is in progress. Default: never.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Failed string `json:"failed,omitempty"`
	// Message yields a string that explains the result. Default: the expression that determined the result.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
}

// Dependency names another ManagedResource.
type Dependency struct {
	// Name of the ManagedResource.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Namespace of the ManagedResource. Default: the namespace of the dependent ManagedResource.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Until is the state that the dependency must have reached: Applied (its current generation is applied), Healthy (its
	// objects are also healthy), or RolledOut (none of its objects is being rolled out either). The results of the health
	// checks count even before the conditions report them. Default: Healthy.
	// +optional
	// +kubebuilder:validation:Enum=Applied;Healthy;RolledOut
	Until DependencyUntil `json:"until,omitempty"`
	// For selects what waits for the dependency: Creation (only until all objects were sent once; retries and later changes do
	// not wait), or Changes (each later change also waits). Default: Changes.
	// +optional
	// +kubebuilder:validation:Enum=Creation;Changes
	For DependencyFor `json:"for,omitempty"`
}

// DependencyUntil is the state that a dependency must have reached.
type DependencyUntil string

// The states that a dependency must have reached. Each one includes the previous ones.
const (
	UntilApplied   DependencyUntil = "Applied"
	UntilHealthy   DependencyUntil = "Healthy"
	UntilRolledOut DependencyUntil = "RolledOut"
)

// DependencyFor selects what waits for a dependency.
type DependencyFor string

// The values of DependencyFor.
const (
	ForCreation DependencyFor = "Creation"
	ForChanges  DependencyFor = "Changes"
)

// ManagedResourceReference names another ManagedResource.
type ManagedResourceReference struct {
	// Name of the ManagedResource.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Namespace of the ManagedResource. Default: the namespace of the ManagedResource with the reference.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// PruneGuard refuses to prune if no object of the inventory would be left, or if more than a share of it would be
// deleted. Only objects that were in the inventory before the manifests changed count, not objects that the change
// adds. Refused objects are kept until the manifests change, or until AnnotationConfirmPrune confirms the prune.
type PruneGuard struct {
	// MaxPercent is the maximum share of objects that may be deleted, in percent of those in the inventory before the
	// manifests changed. Default: 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxPercent *int32 `json:"maxPercent,omitempty"`
}

// DriftDetection selects changes to objects that are not reverted.
type DriftDetection struct {
	// Ignore lists fields that are set when an object is created and are not reverted afterwards.
	// +optional
	// +listType=atomic
	Ignore []IgnoreRule `json:"ignore,omitempty"`
	// OnlyOnChange lists fields that are sent only when an object is created, when its manifest has changed, and when a
	// correction changes the object's generation. At other times, changes of these fields are not reverted. It is meant
	// for annotations that request an operation and that a controller removes when it starts the operation.
	// +optional
	// +listType=atomic
	OnlyOnChange []IgnoreRule `json:"onlyOnChange,omitempty"`
}

// ObjectSelector selects objects of a ManagedResource.
type ObjectSelector struct {
	// Group of the objects; empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// Kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Name of the object. Default: all names.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// Selects reports whether an object has the group, kind and name of the selector.
func (s ObjectSelector) Selects(gk schema.GroupKind, name string) bool {
	return s.Group == gk.Group && s.Kind == gk.Kind && (s.Name == "" || s.Name == name)
}

// IgnoreRule selects fields of objects.
type IgnoreRule struct {
	// Group of the objects; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// Kind of the objects. Default: all kinds of all groups.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name of the object. Default: all names.
	// +optional
	Name string `json:"name,omitempty"`
	// Paths are JSON pointers (RFC 6901), such as /spec/replicas. "*" selects all items of a list, such as in
	// /spec/template/spec/containers/*/image. Indices are not supported.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	Paths []string `json:"paths"`
}

// LocalObjectReference names an object in the namespace of the object that holds the reference.
//
// +structType=atomic
type LocalObjectReference struct {
	// Name of the object.
	// +optional
	// +default=""
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// GroupKind is a kind and its API group.
type GroupKind struct {
	// Group is the API group; empty for the core group.
	Group string `json:"group"`
	// Kind is the name of the kind, such as "Deployment".
	Kind string `json:"kind"`
}

// ManagedResourceStatus is the observed state of a ManagedResource.
type ManagedResourceStatus struct {
	// Conditions report whether the objects are applied, healthy and rolled out.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation of the spec to which the conditions refer.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Resources is the inventory: every object of this ManagedResource that exists, or may exist, in the target cluster,
	// sorted by group, kind, namespace and name.
	// +optional
	// +listType=atomic
	Resources []ObjectReference `json:"resources,omitempty"`
	// SecretsDataChecksum is the SHA-256 (lower-case hex) of the manifests that were last applied.
	// +optional
	SecretsDataChecksum *string `json:"secretsDataChecksum,omitempty"`
	// AppliedInputs is a digest of the inputs of the last complete reconcile: the spec, the versions of the Secrets, and
	// the settings of the resource-manager. The Secrets are not read again as long as it stays the same.
	// +optional
	AppliedInputs string `json:"appliedInputs,omitempty"`
	// PruneBaseline is the number of objects in the inventory before the manifests changed, while the inventory still
	// contains objects that were removed from the manifests. The share of the prune guard refers to this number. It is not
	// set if every object in the inventory is wanted.
	// +optional
	PruneBaseline int32 `json:"pruneBaseline,omitempty"`
	// FoundUnhealthy is the reason that ResourcesHealthy gets if the health checks keep failing for a moment. Until then,
	// ResourcesHealthy stays True, but changes that wait for this ManagedResource continue to wait. FoundUnhealthy is set
	// only if another ManagedResource depends on this one.
	// +optional
	FoundUnhealthy string `json:"foundUnhealthy,omitempty"`
}

// Condition is one aspect of the state of a ManagedResource.
type Condition struct {
	// Type of the condition.
	// +kubebuilder:validation:MinLength=1
	Type ConditionType `json:"type"`
	// Status is True, False, Unknown or Progressing.
	// +kubebuilder:validation:Enum=True;False;Unknown;Progressing
	Status ConditionStatus `json:"status"`
	// LastTransitionTime is when the status last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// LastUpdateTime is when status, reason, message or codes last changed.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
	// Reason is a machine-readable word in CamelCase.
	Reason string `json:"reason"`
	// Message is a human-readable explanation of the status.
	Message string `json:"message"`
	// Codes are well-known error codes. The resource-manager does not set them.
	// +optional
	// +listType=atomic
	Codes []string `json:"codes,omitempty"`
}

// ObjectReference is an entry of the inventory. The fields up to FieldPath are those of a core/v1 ObjectReference.
//
// +structType=atomic
type ObjectReference struct {
	// Kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Namespace of the object; empty for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// UID is not set by the resource-manager.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// APIVersion of the object, as in its manifest.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// ResourceVersion is not set by the resource-manager.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// FieldPath is not set by the resource-manager.
	// +optional
	FieldPath string `json:"fieldPath,omitempty"`
	// Labels that the resource-manager set on the object.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the object's manifest.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Digest is "<sent>.<owned>": a digest of the body that was last sent to the API server for this object, and a digest
	// of the fields that the resource-manager owned after that. The object is not sent again as long as both digests match
	// the current manifest and the currently owned fields. It is empty until the object was applied.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Completed is set once a Job with a TTL has finished. The Job is not created again after its TTL has deleted it, until
	// its manifest changes.
	// +optional
	Completed bool `json:"completed,omitempty"`
}
