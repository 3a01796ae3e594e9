package apiserver

import (
	"errors"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	authenticationv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apiserver/hub"
)

// servedVersions are the versions of each group, the preferred one first.
var servedVersions = map[string][]schema.GroupVersion{
	gardencorev1beta1.GroupName:      {gardencorev1beta1.SchemeGroupVersion, gardencorev1.SchemeGroupVersion},
	operationsv1alpha1.GroupName:     {operationsv1alpha1.SchemeGroupVersion},
	securityv1alpha1.GroupName:       {securityv1alpha1.SchemeGroupVersion},
	seedmanagementv1alpha1.GroupName: {seedmanagementv1alpha1.SchemeGroupVersion},
	settingsv1alpha1.GroupName:       {settingsv1alpha1.SchemeGroupVersion},
}

// addExternal adds the versions that clients use to a scheme.
var addExternal = runtime.NewSchemeBuilder(
	authenticationv1alpha1.AddToScheme, gardencorev1.AddToScheme, gardencorev1beta1.AddToScheme, operationsv1alpha1.AddToScheme,
	securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme, settingsv1alpha1.AddToScheme, autoscalingv1.AddToScheme,
)

// addBehaviour adds the defaults of all versions and the conversions between them to a scheme.
var addBehaviour = runtime.NewSchemeBuilder(
	authenticationv1alpha1.RegisterDefaults, gardencorev1.RegisterConversions, gardencorev1beta1.RegisterDefaults,
	securityv1alpha1.RegisterDefaults, seedmanagementv1alpha1.RegisterDefaults, settingsv1alpha1.RegisterDefaults,
)

// newScheme returns the scheme of the API server: all versions, defaults and conversions, and the internal versions.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := addExternal.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := addBehaviour.AddToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	unversioned := schema.GroupVersion{Version: "v1"}
	scheme.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{},
		&metav1.APIResourceList{})

	// ControllerDeployment is stored as core/v1, all other kinds of the group as core/v1beta1.
	errs := []error{
		hub.Register(scheme, gardencorev1.SchemeGroupVersion),
		hub.Register(scheme, gardencorev1beta1.SchemeGroupVersion, "ControllerDeployment", "ControllerDeploymentList"),
		hub.Register(scheme, authenticationv1alpha1.SchemeGroupVersion),
		hub.Register(scheme, operationsv1alpha1.SchemeGroupVersion),
		hub.Register(scheme, securityv1alpha1.SchemeGroupVersion),
		hub.Register(scheme, seedmanagementv1alpha1.SchemeGroupVersion),
		hub.Register(scheme, settingsv1alpha1.SchemeGroupVersion),
		hub.Register(scheme, autoscalingv1.SchemeGroupVersion),
	}
	for _, versions := range servedVersions {
		errs = append(errs, scheme.SetVersionPriority(versions...))
	}
	return scheme, errors.Join(errs...)
}
