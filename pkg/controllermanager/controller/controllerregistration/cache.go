package controllerregistration

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/references"
	"github.com/trellis-k8s/trellis/pkg/installation"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// Indexes of the cache: objects by the names of their Seeds, and installations by their registrations. The API server
// supports those of installations as field selectors with the same names.
const (
	indexSeed             = "seed"
	indexInstallationSeed = "spec.seedRef.name"
)

// observedRoles are the roles of the Secrets and ConfigMaps in namespace garden that the cache contains.
var observedRoles = []string{
	constants.RoleDefaultDomain, constants.RoleResourceReference, constants.RoleHelmPullSecret, constants.RoleOCICABundle,
}

// selects returns what is cached: of Secrets and ConfigMaps only the metadata of those with the observed roles.
func selects() []controller.Select {
	selector := labels.NewSelector()
	if roles, err := labels.NewRequirement(constants.LabelGardenRole, selection.In, observedRoles); err == nil {
		selector = selector.Add(*roles)
	} else {
		selector = labels.Nothing() // unreachable: the roles are constants
	}
	inGarden := cache.ByObject{
		Namespaces: map[string]cache.Config{constants.GardenNamespace: {LabelSelector: selector}},
		Transform:  reduceMetadata,
	}
	return []controller.Select{
		{Object: &gardencorev1.ControllerDeployment{}, Options: cache.ByObject{Transform: reduceDeployment}},
		{Object: watches.MetadataOf(references.Secret), Options: inGarden},
		{Object: watches.MetadataOf(references.ConfigMap), Options: inGarden},
	}
}

// keepShoot keeps the fields of Shoots that need extensions.
func keepShoot(kept, shoot *corev1beta1.Shoot) {
	references.Keep(kept, shoot)
	kept.Spec.SeedName, kept.Status.SeedName = shoot.Spec.SeedName, shoot.Status.SeedName
	kept.Spec.Provider.Type = cachetransform.Intern(shoot.Spec.Provider.Type)
	if networking := shoot.Spec.Networking; networking != nil {
		kept.Spec.Networking = &corev1beta1.Networking{Type: networking.Type}
	}
	for _, extension := range shoot.Spec.Extensions {
		kept.Spec.Extensions = append(kept.Spec.Extensions, corev1beta1.Extension{Type: extension.Type, Disabled: extension.Disabled})
	}
	for _, pool := range shoot.Spec.Provider.Workers {
		reduced := corev1beta1.Worker{Name: pool.Name, CRI: pool.CRI, ControlPlane: pool.ControlPlane}
		if pool.Machine.Image != nil {
			reduced.Machine.Image = &corev1beta1.ShootMachineImage{Name: cachetransform.Intern(pool.Machine.Image.Name)}
		}
		kept.Spec.Provider.Workers = append(kept.Spec.Provider.Workers, reduced)
	}
}

// reduceDeployment replaces charts, which are large, by their digests.
func reduceDeployment(object any) (any, error) {
	if deployment, ok := object.(*gardencorev1.ControllerDeployment); ok {
		deployment.ManagedFields = nil
		delete(deployment.Annotations, corev1.LastAppliedConfigAnnotation) // contains the chart
		installation.Reduce(deployment)
	}
	return object, nil
}

// reduceMetadata removes the annotation of client-side "kubectl apply", which contains a Secret's data.
func reduceMetadata(object any) (any, error) {
	if meta, ok := object.(*metav1.PartialObjectMetadata); ok {
		meta.ManagedFields = nil
		delete(meta.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return object, nil
}

// indexes returns the indexes of the cache.
func indexes() []controller.Index {
	return []controller.Index{
		{Object: &corev1beta1.Shoot{}, Field: indexSeed, Values: seedsOf},
		{Object: &corev1beta1.BackupEntry{}, Field: indexSeed, Values: seedsOf},
		{Object: &corev1beta1.ControllerInstallation{}, Field: indexInstallationSeed, Values: seedsOf},
	}
}

// seedsOf returns the names of the Seeds of an object. During a migration there are two.
func seedsOf(object client.Object) []string {
	var names []string
	add := func(name *string) {
		if name := ptr.Deref(name, ""); name != "" && (len(names) == 0 || names[0] != name) {
			names = append(names, name)
		}
	}
	switch object := object.(type) {
	case *corev1beta1.Shoot:
		add(object.Spec.SeedName)
		add(object.Status.SeedName)
	case *corev1beta1.BackupEntry:
		add(object.Spec.SeedName)
		add(object.Status.SeedName)
	case *corev1beta1.ControllerInstallation:
		if object.Spec.SeedRef != nil {
			add(&object.Spec.SeedRef.Name)
		}
	}
	return names
}
