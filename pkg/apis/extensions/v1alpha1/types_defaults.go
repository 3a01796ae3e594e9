package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// DefaultSpec is what the specifications of all extension resources have in common.
// +kubebuilder:validation:XValidation:rule="has(self.class) == has(oldSelf.class)",message="class is immutable"
type DefaultSpec struct {
	// Type is the type, which defines which extension is responsible. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Type string `json:"type"`
	// Class is the kind of cluster that the resource belongs to. It is immutable. In effect without a value: shoot.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Class *ExtensionClass `json:"class,omitempty"`
	// ProviderConfig is the configuration, in the format of the extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// DefaultStatus is what the statuses of all extension resources have in common.
type DefaultStatus struct {
	// ProviderStatus is what the extension reports, in its format.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
	// Conditions describe the health of what the extension made.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// LastError is the error of the last operation.
	// +optional
	LastError *gardencorev1beta1.LastError `json:"lastError,omitempty"`
	// LastOperation is the last operation.
	// +optional
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	// ObservedGeneration is the generation that the extension has seen last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// State is what the extension needs to take over elsewhere, in its format.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	State *runtime.RawExtension `json:"state,omitempty"`
	// Resources name the objects that the state refers to.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Resources []gardencorev1beta1.NamedResourceReference `json:"resources,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// ExtensionClass is the kind of cluster that an extension resource belongs to.
// +enum
// +kubebuilder:validation:Enum=garden;seed;shoot
type ExtensionClass string

// The values of ExtensionClass.
const (
	// ExtensionClassGarden is the garden.
	ExtensionClassGarden ExtensionClass = "garden"
	// ExtensionClassSeed is a Seed.
	ExtensionClassSeed ExtensionClass = "seed"
	// ExtensionClassShoot is a Shoot.
	ExtensionClassShoot ExtensionClass = "shoot"
)
