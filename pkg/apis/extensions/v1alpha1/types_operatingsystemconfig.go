package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OperatingSystemConfig asks an extension for the configuration of nodes: their units, files and container runtime.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=osc
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="The type that an extension is responsible for"
// +kubebuilder:printcolumn:name="Purpose",type=string,JSONPath=`.spec.purpose`,description="What the object is for"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="The state of the last operation"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type OperatingSystemConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec OperatingSystemConfigSpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status OperatingSystemConfigStatus `json:"status,omitempty"`
}

// OperatingSystemConfigList is a list of OperatingSystemConfig objects.
// +kubebuilder:object:root=true
type OperatingSystemConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []OperatingSystemConfig `json:"items"`
}

// OperatingSystemConfigSpec is the desired state of an OperatingSystemConfig.
// +kubebuilder:validation:XValidation:rule="self.purpose != 'provision' || !has(self.criConfig) || !has(self.criConfig.containerd)",message="criConfig.containerd is forbidden for the purpose provision"
type OperatingSystemConfigSpec struct {
	// CRIConfig holds the settings of the container runtime.
	// +optional
	CRIConfig   *CRIConfig `json:"criConfig,omitempty"`
	DefaultSpec `json:",inline"`
	// Purpose is what the configuration is for. It is immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Purpose OperatingSystemConfigPurpose `json:"purpose"`
	// Units are the systemd units.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Units []Unit `json:"units,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Files are the files.
	// +listType=atomic
	// +optional
	Files []File `json:"files,omitempty"`
	// InPlaceUpdates is the versions to which nodes are updated in place.
	// +optional
	InPlaceUpdates *InPlaceUpdates `json:"inPlaceUpdates,omitempty"`
}

// OperatingSystemConfigPurpose is what a configuration of nodes is for.
// +enum
// +kubebuilder:validation:Enum=provision;reconcile
type OperatingSystemConfigPurpose string

// The values of OperatingSystemConfigPurpose.
const (
	// OperatingSystemConfigPurposeProvision starts a new node.
	OperatingSystemConfigPurposeProvision OperatingSystemConfigPurpose = "provision"
	// OperatingSystemConfigPurposeReconcile configures a node that runs.
	OperatingSystemConfigPurposeReconcile OperatingSystemConfigPurpose = "reconcile"
)

// Unit is a systemd unit.
type Unit struct {
	// Name is the name of the unit.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Command is what is done with the unit.
	// +optional
	Command *UnitCommand `json:"command,omitempty"`
	// Enable defines whether the unit is started with the node.
	// +optional
	Enable *bool `json:"enable,omitempty"`
	// Content is the content of the unit.
	// +optional
	Content *string `json:"content,omitempty"`
	// DropIns change parts of the unit.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	DropIns []DropIn `json:"dropIns,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// FilePaths are the paths of files; when one of them changes, the unit is restarted.
	// +listType=atomic
	// +optional
	FilePaths []string `json:"filePaths,omitempty"`
}

// UnitCommand is what is done with a unit.
// +enum
// +kubebuilder:validation:Enum=start;restart;stop
type UnitCommand string

// The values of UnitCommand.
const (
	// CommandStart starts the unit.
	CommandStart UnitCommand = "start"
	// CommandRestart restarts the unit.
	CommandRestart UnitCommand = "restart"
	// CommandStop stops the unit.
	CommandStop UnitCommand = "stop"
)

// DropIn changes parts of a unit.
type DropIn struct {
	// Name is the name of the file.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Content is its content.
	// +kubebuilder:validation:MinLength=1
	Content string `json:"content"`
}

// File is a file on a node.
type File struct {
	// Path is the path of the file.
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`
	// Permissions is the mode bits of the file, as a decimal number.
	// +optional
	Permissions *uint32 `json:"permissions,omitempty"`
	// Content is where the content comes from.
	Content FileContent `json:"content"`
	// HostName is the host that gets the file. Default: all.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	HostName *string `json:"hostName,omitempty"`
}

// FileContent is the source of the content of a file. It has one source.
// +kubebuilder:validation:XValidation:rule="(has(self.secretRef) ? 1 : 0) + (has(self.inline) ? 1 : 0) + (has(self.imageRef) ? 1 : 0) == 1",message="must have exactly one of secretRef, inline and imageRef"
type FileContent struct {
	// SecretRef takes it from a Secret.
	// +optional
	SecretRef *FileContentSecretRef `json:"secretRef,omitempty"`
	// Inline has it itself.
	// +optional
	Inline *FileContentInline `json:"inline,omitempty"`
	// TransmitUnencoded defines whether the content is sent as it is, so that the infrastructure can replace parts of it.
	// +optional
	TransmitUnencoded *bool `json:"transmitUnencoded,omitempty"`
	// ImageRef takes it from a container image.
	// +optional
	ImageRef *FileContentImageRef `json:"imageRef,omitempty"`
}

// FileContentSecretRef refers to a key of a Secret.
type FileContentSecretRef struct {
	// Name is the name of the Secret.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// DataKey is the key.
	// +kubebuilder:validation:MinLength=1
	DataKey string `json:"dataKey"`
}

// FileContentInline is the content of a file.
type FileContentInline struct {
	// Encoding is how the content is encoded: empty for plain text, or b64.
	// +kubebuilder:validation:Enum="";b64
	Encoding string `json:"encoding"`
	// Data is the content.
	// +kubebuilder:validation:MinLength=1
	Data string `json:"data"`
}

// FileContentImageRef refers to a file in a container image.
type FileContentImageRef struct {
	// Image is the image.
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`
	// FilePathInImage is the path of the file in the image.
	// +kubebuilder:validation:MinLength=1
	FilePathInImage string `json:"filePathInImage"`
}

// InPlaceUpdates holds the versions to which nodes are updated in place.
type InPlaceUpdates struct {
	// OperatingSystemVersion is the version of the operating system.
	OperatingSystemVersion string `json:"operatingSystemVersion"`
	// KubeletVersion is the version of kubelet.
	KubeletVersion string `json:"kubelet"`
	// CredentialsRotation is the rotations of credentials that nodes take part in.
	// +optional
	CredentialsRotation *CredentialsRotation `json:"credentialsRotation,omitempty"`
}

// CredentialsRotation are rotations of credentials that nodes take part in.
type CredentialsRotation struct {
	// CertificateAuthorities is the rotation of certificate authorities.
	// +optional
	CertificateAuthorities *CARotation `json:"certificateAuthorities,omitempty"`
	// ServiceAccountKey is the rotation of the key for tokens of service accounts.
	// +optional
	ServiceAccountKey *ServiceAccountKeyRotation `json:"serviceAccountKey,omitempty"`
}

// CARotation is a rotation of certificate authorities.
type CARotation struct {
	// LastInitiationTime is the time at which it was started last.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
}

// ServiceAccountKeyRotation is a rotation of the key for tokens of service accounts.
type ServiceAccountKeyRotation struct {
	// LastInitiationTime is the time at which it was started last.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
}
