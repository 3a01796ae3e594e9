package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// GroupName is the API group of the configuration file.
	GroupName = "resourcemanager.config.gardener.cloud"
	// Kind is the kind of the configuration file.
	Kind = "ResourceManagerConfiguration"
)

var (
	// SchemeGroupVersion is the group and version of this package's kind.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}
	// SchemeBuilder collects the functions that add this package's kind to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds ResourceManagerConfiguration to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &ResourceManagerConfiguration{})
	return nil
}
