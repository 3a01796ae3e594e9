package app

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/networkpolicy"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/registration"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
)

// seedCacheOptions reduces the cache of the seed to the fields that the controllers read. For Secrets, this is only the
// metadata. The data of single Secrets is read from the API server.
func seedCacheOptions() cache.Options {
	return cache.Options{
		NewInformer:      rewatch.NewInformer,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}: {Transform: reduceSecret},
			// The ManagedResources of the Seed's own flow have their own cache.
			&resourcesv1alpha1.ManagedResource{}: {
				Label:     networkpolicy.Selector(),
				Transform: cachetransform.NewCompactor().Compact,
			},
			// The EndpointSlices of the seed's API server.
			&discoveryv1.EndpointSlice{}: {Namespaces: map[string]cache.Config{metav1.NamespaceDefault: {}}},
		},
	}
}

// reduceSecret drops the managed fields and the annotation of client-side "kubectl apply", which repeats the data.
func reduceSecret(obj any) (any, error) {
	if meta, ok := obj.(*metav1.PartialObjectMetadata); ok {
		meta.ManagedFields = nil
		delete(meta.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return obj, nil
}

// gardenCacheOptions restricts the cache to the objects of the Seed, so that the garden can restrict the rights of a
// gardenlet accordingly. Kinds whose objects are read one by one are not cached: see uncached.
func gardenCacheOptions(seed string) cache.Options {
	ofSeed := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{registration.SeedLabel(seed): "true"})}
	field := func(path, value string) cache.ByObject {
		return cache.ByObject{Field: fields.OneTermEqualSelector(path, value)}
	}
	own := cache.ByObject{Namespaces: map[string]cache.Config{constants.PrefixSeedNamespace + seed: {}}}
	gardenlet := field(metav1.ObjectNameField, seed)
	gardenlet.Namespaces = map[string]cache.Config{constants.GardenNamespace: {}}
	return cache.Options{
		NewInformer:      rewatch.NewInformer,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&gardencorev1beta1.Seed{}:                   ofSeed,
			&gardencorev1beta1.Shoot{}:                  ofSeed,
			&seedmanagementv1alpha1.ManagedSeed{}:       ofSeed,
			&seedmanagementv1alpha1.Gardenlet{}:         gardenlet,
			&gardencorev1beta1.ControllerInstallation{}: field("spec.seedRef.name", seed),
			&gardencorev1beta1.BackupBucket{}:           field("spec.seedName", seed),
			&gardencorev1beta1.BackupEntry{}:            ofSeed, // also those that another Seed takes over, until this one has given them up
			&operationsv1alpha1.Bastion{}:               field("spec.seedName", seed),
			&corev1.Secret{}:                            own,
			&corev1.ServiceAccount{}:                    own,
		},
	}
}

// uncached are the kinds of the garden whose objects are read one by one from the API server.
func uncached() []client.Object {
	return []client.Object{
		&corev1.ConfigMap{}, &corev1.Namespace{}, &gardencorev1beta1.CloudProfile{}, &gardencorev1beta1.NamespacedCloudProfile{},
		&gardencorev1beta1.ControllerDeployment{}, &gardencorev1beta1.ExposureClass{}, &gardencorev1beta1.InternalSecret{},
		&gardencorev1beta1.SecretBinding{}, &gardencorev1beta1.ShootState{},
	}
}

// newGardenCluster returns the client and the cache of the garden.
func newGardenCluster(config *rest.Config, scheme *runtime.Scheme, seed string) (cluster.Cluster, error) {
	return cluster.New(config, func(options *cluster.Options) {
		options.Scheme = scheme
		options.Cache = gardenCacheOptions(seed)
		options.Client.Cache = &client.CacheOptions{DisableFor: uncached()}
	})
}
