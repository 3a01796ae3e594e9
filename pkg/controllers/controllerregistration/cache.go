package controllerregistration

import (
	"context"
	"errors"
	"fmt"

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
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shoothibernation"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shootretry"
	"github.com/trellis-k8s/trellis/pkg/controllers/gardenletrights"
	"github.com/trellis-k8s/trellis/pkg/controllers/references"
	"github.com/trellis-k8s/trellis/pkg/controllers/shootstatuslabel"
	"github.com/trellis-k8s/trellis/pkg/installation"
)

// Indexes of the cache: objects by the names of their Seeds, and installations by their registrations. The API server
// supports those of installations as field selectors with the same names.
const (
	indexSeed             = "seed"
	indexInstallationSeed = "spec.seedRef.name"
	indexRegistration     = "spec.registrationRef.name"
)

// observedRoles are the roles of the Secrets and ConfigMaps in namespace garden that the cache contains.
var observedRoles = []string{
	constants.RoleDefaultDomain, constants.RoleResourceReference, constants.RoleHelmPullSecret, constants.RoleOCICABundle,
}

// CacheOptions returns the options of the controllers' cache, which only contains the fields that decisions depend on.
func CacheOptions() (map[client.Object]cache.ByObject, error) {
	roles, err := labels.NewRequirement(constants.LabelGardenRole, selection.In, observedRoles)
	if err != nil {
		return nil, fmt.Errorf("select the Secrets of the garden: %w", err)
	}
	inGarden := cache.ByObject{
		Namespaces: map[string]cache.Config{constants.GardenNamespace: {LabelSelector: labels.NewSelector().Add(*roles)}},
		Transform:  reduceMetadata,
	}
	return map[client.Object]cache.ByObject{
		&corev1beta1.Shoot{}:                 {Transform: reduceShoot},
		&gardencorev1.ControllerDeployment{}: {Transform: reduceDeployment},
		metadataOf(references.Secret):        inGarden,
		metadataOf(references.ConfigMap):     inGarden,
	}, nil
}

// metadataOf returns empty metadata of a kind of the core group.
func metadataOf(kind string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return object
}

// reduceShoot returns the fields of a Shoot that the controllers of this package, of the status label, of hibernation
// schedules, of retries and of gardenlets' rights read, because a process has one cache of Shoots.
func reduceShoot(object any) (any, error) {
	shoot, ok := object.(*corev1beta1.Shoot)
	if !ok {
		return object, nil
	}
	kept := &corev1beta1.Shoot{ObjectMeta: cachetransform.Meta(shoot), Spec: gardenletrights.Reduce(&shoot.Spec)}
	kept.Spec.SeedName, kept.Spec.DNS, kept.Status.SeedName = shoot.Spec.SeedName, shoot.Spec.DNS, shoot.Status.SeedName
	kept.Labels = cachetransform.KeepKeys(shoot.Labels, constants.LabelShootStatus)
	shootstatuslabel.Keep(&kept.Status, shoot.Status)
	shoothibernation.Keep(kept, shoot)
	shootretry.Keep(kept, shoot)
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
	return kept, nil
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

// addIndexes adds the indexes to a cache.
func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	err := errors.Join(
		indexer.IndexField(ctx, &corev1beta1.Shoot{}, indexSeed, seedsOf),
		indexer.IndexField(ctx, &corev1beta1.BackupEntry{}, indexSeed, seedsOf),
		indexer.IndexField(ctx, &corev1beta1.ControllerInstallation{}, indexInstallationSeed, seedsOf),
		indexer.IndexField(ctx, &corev1beta1.ControllerInstallation{}, indexRegistration, func(object client.Object) []string {
			if found, ok := object.(*corev1beta1.ControllerInstallation); ok {
				return []string{found.Spec.RegistrationRef.Name}
			}
			return nil
		}),
	)
	if err != nil {
		return fmt.Errorf("add the indexes of the controllers of extensions: %w", err)
	}
	return nil
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
