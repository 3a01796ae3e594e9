package v1alpha1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// defaultShootCapacity is the default number of Shoots of a Seed.
const defaultShootCapacity = 250

// RegisterDefaults makes a scheme set the defaults of this package's kinds. The API server does so, clients do not.
func RegisterDefaults(scheme *runtime.Scheme) error {
	defaulting.Register(scheme, &Gardenlet{}, SetDefaultsGardenlet)
	defaulting.Register(scheme, &ManagedSeed{}, SetDefaultsManagedSeed)
	defaulting.Register(scheme, &ManagedSeedSet{}, SetDefaultsManagedSeedSet)
	return nil
}

// SetDefaultsManagedSeed sets the defaults of a ManagedSeed.
func SetDefaultsManagedSeed(seed *ManagedSeed) { setDefaultsManagedSeedSpec(&seed.Spec) }

func setDefaultsManagedSeedSpec(spec *ManagedSeedSpec) {
	gardenlet := &spec.Gardenlet
	deployment := defaulting.Object(&gardenlet.Deployment)
	defaulting.Object(&deployment.Image)
	setDefaultsGardenletDeployment(deployment)
	setDefaultsGardenletConfiguration(&gardenlet.Config)
	defaulting.Pointer(&gardenlet.Bootstrap, BootstrapToken)
	defaulting.Pointer(&gardenlet.MergeWithParent, true)
}

// SetDefaultsManagedSeedSet sets the defaults of a ManagedSeedSet. Its templates stay as given, so that the defaults of a
// later version apply to what is created from them.
func SetDefaultsManagedSeedSet(set *ManagedSeedSet) {
	defaulting.Pointer(&set.Spec.Replicas, 1)
	defaulting.Pointer(&set.Spec.RevisionHistoryLimit, 10)
	strategy := defaulting.Object(&set.Spec.UpdateStrategy)
	defaulting.Pointer(&strategy.Type, RollingUpdateStrategyType)
	if strategy.RollingUpdate != nil {
		defaulting.Pointer(&strategy.RollingUpdate.Partition, 0)
	}
}

// SetDefaultsTemplates sets the defaults of the templates of a ManagedSeedSet, as the API server does for the objects that
// are created from them.
func SetDefaultsTemplates(set *ManagedSeedSet) {
	setDefaultsManagedSeedSpec(&set.Spec.Template.Spec)
	gardencorev1beta1.SetDefaultsShootSpec(&set.Spec.ShootTemplate.Spec, set.Namespace, set.Name)
}

// SetDefaultsGardenlet sets the defaults of a Gardenlet.
func SetDefaultsGardenlet(gardenlet *Gardenlet) {
	defaulting.Object(&gardenlet.Spec.Deployment.Image)
	setDefaultsGardenletDeployment(&gardenlet.Spec.Deployment.GardenletDeployment)
	setDefaultsGardenletConfiguration(&gardenlet.Spec.Config)
}

func setDefaultsGardenletDeployment(deployment *GardenletDeployment) {
	defaulting.Pointer(&deployment.ReplicaCount, 2)
	defaulting.Pointer(&deployment.RevisionHistoryLimit, 2)
	defaulting.Pointer(&deployment.EnableHealthProbes, true)
	if image := deployment.Image; image != nil {
		policy := corev1.PullIfNotPresent
		if ptr.Deref(image.Tag, "") == "latest" {
			policy = corev1.PullAlways
		}
		defaulting.Pointer(&image.PullPolicy, policy)
	}
}

// setDefaultsGardenletConfiguration sets the number of Shoots in a configuration, which it creates if it does not exist.
// It does not change a value that is not a JSON object, which validation rejects.
func setDefaultsGardenletConfiguration(config *runtime.RawExtension) {
	content := map[string]any{}
	if len(config.Raw) > 0 && json.Unmarshal(config.Raw, &content) != nil || content == nil {
		return
	}
	if len(content) == 0 {
		content["apiVersion"], content["kind"] = gardenletv1alpha1.APIVersion, gardenletv1alpha1.Kind
	}
	path := []string{"resources", "capacity", gardencorev1beta1.SeedResourceShoots}
	if _, found, err := unstructured.NestedFieldNoCopy(content, path...); found || err != nil {
		return
	}
	if unstructured.SetNestedField(content, int64(defaultShootCapacity), path...) != nil {
		return
	}
	if raw, err := json.Marshal(content); err == nil {
		*config = runtime.RawExtension{Raw: raw}
	}
}
