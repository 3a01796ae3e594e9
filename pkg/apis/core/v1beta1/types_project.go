package v1beta1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Project groups Shoots of the same people in a namespace.
// +kubebuilder:object:root=true
type Project struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec ProjectSpec `json:"spec,omitempty"`
	// Status is what the controllers observed last.
	// +optional
	Status ProjectStatus `json:"status,omitempty"`
}

// ProjectList is a list of Project objects.
// +kubebuilder:object:root=true
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Project `json:"items"`
}

// ProjectSpec is the desired state of a Project.
type ProjectSpec struct {
	// CreatedBy who created the Project. It is immutable.
	// +optional
	CreatedBy *rbacv1.Subject `json:"createdBy,omitempty"`
	// Description describes what the Project is about.
	// +optional
	Description *string `json:"description,omitempty"`
	// Owner who owns the Project.
	// +optional
	Owner *rbacv1.Subject `json:"owner,omitempty"`
	// Purpose defines what the Project is for.
	// +optional
	Purpose *string `json:"purpose,omitempty"`
	// Members are the members with their roles.
	// +listType=atomic
	// +optional
	Members []ProjectMember `json:"members,omitempty"`
	// Namespace is the name of the namespace. It is immutable once set. Default: garden- and the name of the Project.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
	// Tolerations define which taints of Seeds the Shoots of the Project accept.
	// +optional
	Tolerations *ProjectTolerations `json:"tolerations,omitempty"`
	// DualApprovalForDeletion say for which resources two persons have to confirm a deletion.
	// +listType=map
	// +listMapKey=resource
	// +patchMergeKey=resource
	// +patchStrategy=merge
	// +optional
	DualApprovalForDeletion []DualApprovalForDeletion `json:"dualApprovalForDeletion,omitempty" patchStrategy:"merge" patchMergeKey:"resource"`
}

// ProjectStatus is the observed state of a Project.
type ProjectStatus struct {
	// ObservedGeneration is the generation that the controller has seen last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is the state of the Project's namespace.
	// +optional
	Phase ProjectPhase `json:"phase,omitempty"`
	// StaleSinceTimestamp is the time since which the Project is not used.
	// +optional
	StaleSinceTimestamp *metav1.Time `json:"staleSinceTimestamp,omitempty"`
	// StaleAutoDeleteTimestamp is the time at which the unused Project is deleted.
	// +optional
	StaleAutoDeleteTimestamp *metav1.Time `json:"staleAutoDeleteTimestamp,omitempty"`
	// LastActivityTimestamp is the time at which the Project was used last.
	// +optional
	LastActivityTimestamp *metav1.Time `json:"lastActivityTimestamp,omitempty"`
	// Conditions describe the health of the Project.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// ProjectPhase is the state of a Project's namespace.
// +enum
// +kubebuilder:validation:Enum=Pending;Ready;Failed;Terminating
type ProjectPhase string

// The values of ProjectPhase.
const (
	// ProjectPending means that the namespace does not exist yet.
	ProjectPending ProjectPhase = "Pending"
	// ProjectReady means that the namespace can be used.
	ProjectReady ProjectPhase = "Ready"
	// ProjectFailed means that the namespace could not be made or deleted.
	ProjectFailed ProjectPhase = "Failed"
	// ProjectTerminating means that the Project is being deleted.
	ProjectTerminating ProjectPhase = "Terminating"
)

// ProjectMember is a member of a Project with its roles.
type ProjectMember struct {
	rbacv1.Subject `json:",inline"`
	// Role is the first role of the member. Default: viewer.
	Role string `json:"role"`
	// Roles are the other roles of the member.
	// +listType=atomic
	// +optional
	Roles []string `json:"roles,omitempty"`
}

// ProjectTolerations define which taints of Seeds the Shoots of a Project accept.
type ProjectTolerations struct {
	// Defaults are the tolerations that each Shoot of the Project gets.
	// +listType=atomic
	// +patchMergeKey=key
	// +patchStrategy=merge
	// +optional
	Defaults []Toleration `json:"defaults,omitempty" patchStrategy:"merge" patchMergeKey:"key"`
	// Whitelist are the tolerations that the Shoots of the Project may have.
	// +listType=atomic
	// +patchMergeKey=key
	// +patchStrategy=merge
	// +optional
	Whitelist []Toleration `json:"whitelist,omitempty" patchStrategy:"merge" patchMergeKey:"key"`
}

// DualApprovalForDeletion lists the objects whose deletion two persons have to confirm.
type DualApprovalForDeletion struct {
	// Resource is the resource. Only shoots is known.
	Resource string `json:"resource"`
	// Selector selects the objects by their labels.
	Selector metav1.LabelSelector `json:"selector"`
	// IncludeServiceAccounts defines whether deletions by service accounts need a second person, too. In effect without a
	// value: true.
	// +optional
	IncludeServiceAccounts *bool `json:"includeServiceAccounts,omitempty"`
}
