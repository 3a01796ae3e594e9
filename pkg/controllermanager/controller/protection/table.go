package protection

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// row is a kind whose objects are kept while others use them.
type row struct {
	// controller is the name of its controller.
	controller string
	// object is an empty object of the kind.
	object client.Object
	// finalizer keeps the objects.
	finalizer string
	// users are the kinds that refer to the kind.
	users []user
	// configuration of the controller.
	configuration func(*v1alpha1.ControllersConfiguration) *v1alpha1.Concurrency
}

// user is a kind that refers to another kind.
type user struct {
	// kind names its objects in Events.
	kind string
	// object is an empty object of the kind, and list an empty list.
	object client.Object
	list   client.ObjectList
	// local is set if only objects in the same namespace refer to an object.
	local bool
	// refers returns the objects to which an object refers.
	refers func(client.Object) []types.NamespacedName
}

// table returns a row for each kind.
func table() []row { return append(append(profiles(), credentials()...), extensions()...) }

// profiles are what Shoots can choose.
func profiles() []row {
	return []row{
		{
			controller: "cloudprofile", object: &corev1beta1.CloudProfile{}, finalizer: constants.GardenerName,
			users: []user{
				{
					kind: "NamespacedCloudProfile", object: &corev1beta1.NamespacedCloudProfile{}, list: &corev1beta1.NamespacedCloudProfileList{},
					refers: by(func(p *corev1beta1.NamespacedCloudProfile) []types.NamespacedName {
						return names("", p.Spec.Parent.Name)
					}),
				},
				shoots(false, func(s *corev1beta1.Shoot) []types.NamespacedName {
					return profile(s, corev1beta1.CloudProfileReferenceKindCloudProfile, "")
				}),
			},
			configuration: func(c *v1alpha1.ControllersConfiguration) *v1alpha1.Concurrency { return c.CloudProfile },
		},
		{
			controller: "namespacedcloudprofile", object: &corev1beta1.NamespacedCloudProfile{}, finalizer: constants.GardenerName,
			users: []user{shoots(true, func(s *corev1beta1.Shoot) []types.NamespacedName {
				return profile(s, corev1beta1.CloudProfileReferenceKindNamespacedCloudProfile, s.Namespace)
			})},
			configuration: func(c *v1alpha1.ControllersConfiguration) *v1alpha1.Concurrency { return c.NamespacedCloudProfile },
		},
		{
			controller: "exposureclass", object: &corev1beta1.ExposureClass{}, finalizer: constants.GardenerName,
			users:         []user{shoots(false, func(s *corev1beta1.Shoot) []types.NamespacedName { return optional("", s.Spec.ExposureClassName) })},
			configuration: func(c *v1alpha1.ControllersConfiguration) *v1alpha1.Concurrency { return c.ExposureClass },
		},
	}
}

// credentials are the bindings of credentials, and what limits their use.
func credentials() []row {
	return []row{
		{
			controller: "secretbinding", object: &corev1beta1.SecretBinding{}, finalizer: constants.GardenerName,
			users: []user{shoots(true, func(s *corev1beta1.Shoot) []types.NamespacedName {
				return optional(s.Namespace, s.Spec.SecretBindingName)
			})},
			configuration: func(c *v1alpha1.ControllersConfiguration) *v1alpha1.Concurrency { return c.SecretBinding },
		},
		{
			controller: "credentialsbinding", object: &securityv1alpha1.CredentialsBinding{}, finalizer: constants.GardenerName,
			users: []user{shoots(true, func(s *corev1beta1.Shoot) []types.NamespacedName {
				return optional(s.Namespace, s.Spec.CredentialsBindingName)
			})},
			configuration: func(c *v1alpha1.ControllersConfiguration) *v1alpha1.Concurrency { return c.CredentialsBinding },
		},
		{
			controller: "quota", object: &corev1beta1.Quota{}, finalizer: constants.GardenerName,
			users: []user{
				{
					kind: "SecretBinding", object: &corev1beta1.SecretBinding{}, list: &corev1beta1.SecretBindingList{},
					refers: by(func(b *corev1beta1.SecretBinding) []types.NamespacedName { return quotas(b.Namespace, b.Quotas) }),
				},
				{
					kind: "CredentialsBinding", object: &securityv1alpha1.CredentialsBinding{}, list: &securityv1alpha1.CredentialsBindingList{},
					refers: by(func(b *securityv1alpha1.CredentialsBinding) []types.NamespacedName {
						return quotas(b.Namespace, b.Quotas)
					}),
				},
			},
			configuration: func(c *v1alpha1.ControllersConfiguration) *v1alpha1.Concurrency { return c.Quota },
		},
	}
}

// extensions are the registrations of extensions.
func extensions() []row {
	return []row{
		{
			controller: "controllerdeployment", object: &gardencorev1.ControllerDeployment{}, finalizer: constants.FinalizerControllerDeployment,
			users: []user{{
				kind: "ControllerRegistration", object: &corev1beta1.ControllerRegistration{}, list: &corev1beta1.ControllerRegistrationList{},
				refers: by(deployments),
			}},
			configuration: func(c *v1alpha1.ControllersConfiguration) *v1alpha1.Concurrency { return c.ControllerDeployment },
		},
		{
			controller: "controllerregistration-finalizer", object: &corev1beta1.ControllerRegistration{}, finalizer: constants.FinalizerControllerRegistration,
			users: []user{{
				kind: "ControllerInstallation", object: &corev1beta1.ControllerInstallation{}, list: &corev1beta1.ControllerInstallationList{},
				refers: by(func(i *corev1beta1.ControllerInstallation) []types.NamespacedName {
					return names("", i.Spec.RegistrationRef.Name)
				}),
			}},
			configuration: func(c *v1alpha1.ControllersConfiguration) *v1alpha1.Concurrency { return c.ControllerRegistration },
		},
	}
}

// keep keeps the fields of a Shoot that refer to protected objects.
func keep(kept, shoot *corev1beta1.Shoot) {
	kept.Spec.CloudProfile, kept.Spec.CloudProfileName = shoot.Spec.CloudProfile, shoot.Spec.CloudProfileName
	kept.Spec.ExposureClassName = shoot.Spec.ExposureClassName
	kept.Spec.SecretBindingName, kept.Spec.CredentialsBindingName = shoot.Spec.SecretBindingName, shoot.Spec.CredentialsBindingName
}

// by returns a function for objects of one type.
func by[T client.Object](refers func(T) []types.NamespacedName) func(client.Object) []types.NamespacedName {
	return func(object client.Object) []types.NamespacedName {
		typed, ok := object.(T)
		if !ok {
			return nil
		}
		return refers(typed)
	}
}

func shoots(local bool, refers func(*corev1beta1.Shoot) []types.NamespacedName) user {
	return user{kind: "Shoot", object: &corev1beta1.Shoot{}, list: &corev1beta1.ShootList{}, local: local, refers: by(refers)}
}

// profile returns the profile of a Shoot if it is of a kind.
func profile(shoot *corev1beta1.Shoot, kind, namespace string) []types.NamespacedName {
	reference := cloudprofile.ReferenceOf(&shoot.Spec)
	if reference.Kind != kind {
		return nil
	}
	return names(namespace, reference.Name)
}

func quotas(namespace string, references []corev1.ObjectReference) []types.NamespacedName {
	var found []types.NamespacedName
	for _, reference := range references {
		if reference.Namespace != "" {
			namespace = reference.Namespace
		}
		found = append(found, names(namespace, reference.Name)...)
	}
	return found
}

func deployments(registration *corev1beta1.ControllerRegistration) []types.NamespacedName {
	var found []types.NamespacedName
	if registration.Spec.Deployment != nil {
		for _, reference := range registration.Spec.Deployment.DeploymentRefs {
			found = append(found, names("", reference.Name)...)
		}
	}
	return found
}

func optional(namespace string, name *string) []types.NamespacedName {
	if name == nil {
		return nil
	}
	return names(namespace, *name)
}

// names returns one name, or none if it is empty.
func names(namespace, name string) []types.NamespacedName {
	if name == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: namespace, Name: name}}
}
