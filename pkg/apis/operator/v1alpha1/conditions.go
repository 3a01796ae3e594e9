package v1alpha1

import (
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// The types of conditions of a Garden.
const (
	// RuntimeComponentsHealthy says whether the components in the runtime cluster are healthy.
	RuntimeComponentsHealthy gardencorev1beta1.ConditionType = "RuntimeComponentsHealthy"
	// VirtualComponentsHealthy says whether the components of the virtual garden are healthy.
	VirtualComponentsHealthy gardencorev1beta1.ConditionType = "VirtualComponentsHealthy"
	// VirtualGardenAPIServerAvailable says whether the API server of the virtual garden answers.
	VirtualGardenAPIServerAvailable gardencorev1beta1.ConditionType = "VirtualGardenAPIServerAvailable"
	// ObservabilityComponentsHealthy says whether the components of logging and monitoring are healthy.
	ObservabilityComponentsHealthy gardencorev1beta1.ConditionType = "ObservabilityComponentsHealthy"
)

// The types of conditions of an Extension.
const (
	// ExtensionInstalled says whether the extension is installed in the runtime cluster and registered in the garden.
	ExtensionInstalled gardencorev1beta1.ConditionType = "Installed"
	// ExtensionRequiredRuntime says whether the runtime cluster needs the extension.
	ExtensionRequiredRuntime gardencorev1beta1.ConditionType = "RequiredRuntime"
	// ExtensionRequiredVirtual says whether Seeds need the extension.
	ExtensionRequiredVirtual gardencorev1beta1.ConditionType = "RequiredVirtual"
	// ExtensionControllerInstallationsHealthy says whether the extension is healthy in all Seeds.
	ExtensionControllerInstallationsHealthy gardencorev1beta1.ConditionType = "ControllerInstallationsHealthy"
	// ExtensionRuntimeHealthy says whether the extension is healthy in the runtime cluster.
	ExtensionRuntimeHealthy gardencorev1beta1.ConditionType = "RuntimeHealthy"
	// ExtensionAdmissionHealthy says whether the admission controller of the extension is healthy.
	ExtensionAdmissionHealthy gardencorev1beta1.ConditionType = "AdmissionHealthy"
)
