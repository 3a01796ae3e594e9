package shootconditions

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// ofSeeds are the types of conditions that Seeds have.
var ofSeeds = []corev1beta1.ConditionType{
	corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy, corev1beta1.SeedBackupBucketsReady, corev1beta1.SeedExtensionsReady,
	corev1beta1.SeedBackupReady, corev1beta1.SeedEmergencyStopShootReconciliations,
}

// ofShoots are the types of conditions that all Shoots can have: they are never replaced by those of a Seed.
var ofShoots = []corev1beta1.ConditionType{
	corev1beta1.ShootAPIServerAvailable, corev1beta1.ShootControlPlaneHealthy, corev1beta1.ShootObservabilityComponentsHealthy,
	corev1beta1.ShootEveryNodeReady, corev1beta1.ShootSystemComponentsHealthy,
}

// Decide returns which conditions of a Shoot are set and removed. seed is the Seed that it has become, or nil. The gardenlet of a
// self-hosted Shoot reports its own health, which remains.
func Decide(shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) (set []corev1beta1.Condition, remove []corev1beta1.ConditionType) {
	var wanted []corev1beta1.Condition
	if seed != nil {
		wanted = seed.Status.Conditions
	}
	for _, condition := range wanted {
		if slices.Contains(ofShoots, condition.Type) {
			continue
		}
		if before := corev1beta1.FindCondition(shoot.Status.Conditions, condition.Type); before == nil || !equality.Semantic.DeepEqual(*before, condition) {
			set = append(set, condition)
		}
	}
	for _, condition := range shoot.Status.Conditions {
		own := condition.Type == corev1beta1.ShootGardenletReady && isSelfHosted(shoot)
		if slices.Contains(ofSeeds, condition.Type) && !own && corev1beta1.FindCondition(wanted, condition.Type) == nil {
			remove = append(remove, condition.Type)
		}
	}
	return set, remove
}

// isSelfHosted reports whether a pool of a Shoot runs its control plane.
func isSelfHosted(shoot *corev1beta1.Shoot) bool {
	return slices.ContainsFunc(shoot.Spec.Provider.Workers, func(pool corev1beta1.Worker) bool { return pool.ControlPlane != nil })
}
