package v1alpha1

import (
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// The types of conditions of a Garden.
const (
	// RuntimeComponentsHealthy reports whether the components in the runtime cluster are healthy.
	RuntimeComponentsHealthy gardencorev1beta1.ConditionType = "RuntimeComponentsHealthy"
	// VirtualComponentsHealthy reports whether the components of the virtual garden are healthy.
	VirtualComponentsHealthy gardencorev1beta1.ConditionType = "VirtualComponentsHealthy"
	// VirtualGardenAPIServerAvailable reports whether the API server of the virtual garden answers.
	VirtualGardenAPIServerAvailable gardencorev1beta1.ConditionType = "VirtualGardenAPIServerAvailable"
	// ObservabilityComponentsHealthy reports whether the components of logging and monitoring are healthy.
	ObservabilityComponentsHealthy gardencorev1beta1.ConditionType = "ObservabilityComponentsHealthy"
)

// The types of conditions of an Extension.
const (
	// ExtensionInstalled reports whether the extension is installed in the runtime cluster and registered in the garden.
	ExtensionInstalled gardencorev1beta1.ConditionType = "Installed"
	// ExtensionRequiredRuntime reports whether the runtime cluster needs the extension.
	ExtensionRequiredRuntime gardencorev1beta1.ConditionType = "RequiredRuntime"
	// ExtensionRequiredVirtual reports whether Seeds need the extension.
	ExtensionRequiredVirtual gardencorev1beta1.ConditionType = "RequiredVirtual"
	// ExtensionControllerInstallationsHealthy reports whether the extension is healthy in all Seeds.
	ExtensionControllerInstallationsHealthy gardencorev1beta1.ConditionType = "ControllerInstallationsHealthy"
	// ExtensionRuntimeHealthy reports whether the extension is healthy in the runtime cluster.
	ExtensionRuntimeHealthy gardencorev1beta1.ConditionType = "RuntimeHealthy"
	// ExtensionAdmissionHealthy reports whether the admission controller of the extension is healthy.
	ExtensionAdmissionHealthy gardencorev1beta1.ConditionType = "AdmissionHealthy"
)
