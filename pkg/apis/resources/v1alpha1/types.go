package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ManagedResource names Secrets full of manifests and reports what became of the objects in them.
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
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcesApplied")].message`,description="What happened at the last apply."
type ManagedResource struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// What is to be applied, and how.
	// +optional
	Spec ManagedResourceSpec `json:"spec,omitempty"`
	// What was applied, and how it is doing. Until then, an observedGeneration of -1 makes tools such as Flux wait.
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

// ManagedResourceSpec says which manifests are to be applied, by whom and how.
type ManagedResourceSpec struct {
	// Class selects the resource-manager that is responsible. Unset and empty mean the default class.
	// +optional
	Class *string `json:"class,omitempty"`
	// SecretRefs names the Secrets, in the ManagedResource's own namespace, whose data keys hold the
	// manifests. A key that ends in ".br" is decompressed with Brotli first.
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
	// KeepObjects leaves the objects in place when the ManagedResource is deleted or changes its class; it
	// has no effect on objects that leave the ManagedResource. Default: false.
	// +optional
	KeepObjects *bool `json:"keepObjects,omitempty"`
	// Equivalences are sets of kinds whose objects of one name are the same object, so that an object can
	// move between API groups without being deleted.
	// +optional
	Equivalences [][]GroupKind `json:"equivalences,omitempty"`
	// DeletePersistentVolumeClaims deletes the claims of a StatefulSet together with it. Default: false.
	// +optional
	DeletePersistentVolumeClaims *bool `json:"deletePersistentVolumeClaims,omitempty"`
	// ServiceAccountName is a ServiceAccount of the target cluster, "<namespace>/<name>" or a name in the
	// ManagedResource's own namespace, in whose name the objects are written and deleted, so that the
	// ManagedResource can do no more than it. Default: the resource-manager's own identity.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// DependsOn names ManagedResources that must be applied and healthy before this one, or a change of it, is applied. What is applied
	// already stays as it is, even if they fail later. The operation "reconcile" applies a change that waits.
	// +optional
	// +listType=atomic
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// DeleteAfter names ManagedResources that must be gone before the objects of this one are deleted with it. It replaces the default,
	// which is to wait for those that depend on this one; an empty list waits for none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	DeleteAfter []ManagedResourceReference `json:"deleteAfter,omitzero"`
	// Prune guards against deleting too much at once. Without it everything that left the manifests is deleted.
	// +optional
	Prune *PruneGuard `json:"prune,omitempty"`
	// DriftDetection says which changes to the objects are not put back. Without it all are.
	// +optional
	DriftDetection *DriftDetection `json:"driftDetection,omitempty"`
	// StatusOnCreation names objects whose status is in the manifests. It is applied once, through the status subresource, right after such
	// an object was created, while the object has the annotation gardener.cloud/operation with the value wait-for-state. Fields of the status
	// that others have set are not changed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	StatusOnCreation []ObjectSelector `json:"statusOnCreation,omitempty"`
	// HealthChecks say when objects of further kinds are healthy. A check replaces the built-in one for its kind, and the
	// one in the resource-manager's configuration, in this ManagedResource. A kind has at most one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	HealthChecks []HealthCheck `json:"healthChecks,omitempty"`
}

// HealthCheck says by CEL expressions when objects of a kind are healthy. They can use the variables object (all of the
// object), metadata, spec and status, and yield a boolean, unless said otherwise. At least one of healthy, progressing and
// failed is needed. Secrets of the core group cannot be checked, since their data are never read.
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
	// Healthy is true if the object is healthy. Default: it is, unless failed says otherwise.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Healthy string `json:"healthy,omitempty"`
	// Progressing is true while the object is being rolled out. Default: never.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Progressing string `json:"progressing,omitempty"`
	// Failed is true if the object failed: it is unhealthy, and nothing is under way. Default: never.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Failed string `json:"failed,omitempty"`
	// Message yields a string that explains what the others found. Default: the expression that decided.
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
	// Namespace of the ManagedResource. Default: that of the ManagedResource that depends on it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Until is what the dependency must have reached: Applied (its present generation is applied), Healthy (and its objects are healthy), or
	// RolledOut (and none of them is being rolled out). What the checks find counts, even while the conditions do not report it yet.
	// Default: Healthy.
	// +optional
	// +kubebuilder:validation:Enum=Applied;Healthy;RolledOut
	Until DependencyUntil `json:"until,omitempty"`
	// For is what waits: Creation (until all objects were applied once; later changes do not wait), or Changes (that, and each later
	// change). Default: Changes.
	// +optional
	// +kubebuilder:validation:Enum=Creation;Changes
	For DependencyFor `json:"for,omitempty"`
}

// DependencyUntil is what a dependency must have reached.
type DependencyUntil string

// What a dependency must have reached. Each includes those before it.
const (
	UntilApplied   DependencyUntil = "Applied"
	UntilHealthy   DependencyUntil = "Healthy"
	UntilRolledOut DependencyUntil = "RolledOut"
)

// DependencyFor is what waits for a dependency.
type DependencyFor string

// What waits for a dependency.
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
	// Namespace of the ManagedResource. Default: that of the ManagedResource with the reference.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// PruneGuard refuses to prune when no object of the inventory would be left, or when more than a share of it would be deleted.
// Only objects count that were in the inventory before the others left the manifests, not those that come new with the change.
// The objects then stay until the manifests change, or until AnnotationConfirmPrune confirms it.
type PruneGuard struct {
	// MaxPercent is the share, in percent, of the objects that were in the inventory before the manifests changed that may
	// be deleted. Default: 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxPercent *int32 `json:"maxPercent,omitempty"`
}

// DriftDetection says which changes to objects are left alone.
type DriftDetection struct {
	// Ignore lists fields that are set when an object is created and left to others from then on.
	// +optional
	// +listType=atomic
	Ignore []IgnoreRule `json:"ignore,omitempty"`
	// OnlyOnChange lists fields that are sent when an object is created, when its manifest changed, and when something is put back that
	// changes the object's generation; in between they are left to others. It is for annotations that ask for an operation, which a
	// controller removes when it begins.
	// +optional
	// +listType=atomic
	OnlyOnChange []IgnoreRule `json:"onlyOnChange,omitempty"`
}

// ObjectSelector names objects among those of a ManagedResource.
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

// IgnoreRule names fields of objects.
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
	// Paths are JSON pointers (RFC 6901), such as /spec/replicas. The items of a list are all meant by "*", such as in
	// /spec/template/spec/containers/*/image; there are no indices.
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

// GroupKind is an API group and a kind in it.
type GroupKind struct {
	// Group is the API group; empty for the core group.
	Group string `json:"group"`
	// Kind is the kind's name, such as "Deployment".
	Kind string `json:"kind"`
}

// ManagedResourceStatus is what the resource-manager last saw and did.
type ManagedResourceStatus struct {
	// Conditions report whether the objects are applied, healthy and rolled out.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation of the spec that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Resources is the inventory: every object of this ManagedResource that lives in the target cluster,
	// or may live there, sorted by group, kind, namespace and name.
	// +optional
	// +listType=atomic
	Resources []ObjectReference `json:"resources,omitempty"`
	// SecretsDataChecksum is the SHA-256 (lower-case hex) of the manifests that were last applied.
	// +optional
	SecretsDataChecksum *string `json:"secretsDataChecksum,omitempty"`
	// AppliedInputs is a digest of all that the last complete reconcile worked from: the spec, the versions of the
	// Secrets, the resource-manager's settings. While it stays the same, the Secrets need not be read.
	// +optional
	AppliedInputs string `json:"appliedInputs,omitempty"`
	// PruneBaseline is how many objects the inventory held before objects left the manifests that are still in it. The share
	// of the prune guard is of this number. It is not set if every object in the inventory is wanted.
	// +optional
	PruneBaseline int32 `json:"pruneBaseline,omitempty"`
	// FoundUnhealthy is the reason that ResourcesHealthy gets if what the checks found lasts for a moment. Until then it stays True, but
	// changes that wait for this ManagedResource go on waiting. It is set only if another ManagedResource depends on this one.
	// +optional
	FoundUnhealthy string `json:"foundUnhealthy,omitempty"`
}

// Condition is one aspect of a ManagedResource's state.
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
	// Reason is a single word in CamelCase for machines.
	Reason string `json:"reason"`
	// Message explains the status to people.
	Message string `json:"message"`
	// Codes are well-known error codes. The resource-manager sets none.
	// +optional
	// +listType=atomic
	Codes []string `json:"codes,omitempty"`
}

// ObjectReference is an entry of the inventory. The fields up to UID are those of a core/v1 ObjectReference.
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
	// Digest is "<sent>.<owned>": a digest of what was last sent to the API server for this object, and one
	// of the fields that the resource-manager owned right after. While both agree with what would be sent
	// and what is owned now, nothing has to be sent. Empty until the object was applied.
	// +optional
	Digest string `json:"digest,omitempty"`
}
