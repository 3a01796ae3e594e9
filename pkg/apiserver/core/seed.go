package core

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apiserver/cell"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

type seed = *gardencorev1beta1.Seed

func seeds() *registry.Kind[seed] {
	operations := registry.Operations{
		Once: []string{constants.OperationReconcile},
		Kept: []string{
			constants.OperationRenewGardenAccessSecrets, constants.OperationRenewWorkloadIdentityTokens, constants.OperationRenewKubeconfig,
		},
	}
	return &registry.Kind[seed]{
		Resource:                 resource("Seed"),
		New:                      func() seed { return &gardencorev1beta1.Seed{} },
		NewList:                  func() runtime.Object { return &gardencorev1beta1.SeedList{} },
		AllowUnconditionalUpdate: true,
		Columns: []registry.Column[seed]{
			{Name: "Status", Description: "Health of the Seed.", Value: func(s seed) any { return seedHealth(s.Status.Conditions) }},
			{Name: "Last Operation", Description: "Last operation.", Value: func(s seed) any { return cell.Operation(s.Status.LastOperation) }},
			{Name: "Provider", Description: "Type of the infrastructure.", Value: func(s seed) any { return s.Spec.Provider.Type }},
			{Name: "Region", Description: "Region of the infrastructure.", Value: func(s seed) any { return s.Spec.Provider.Region }},
			{Name: "Version", Description: "Version of the gardenlet.", AfterAge: true, Value: func(s seed) any {
				if s.Status.Gardener == nil {
					return cell.Unknown
				}
				return s.Status.Gardener.Version
			}},
			{Name: "K8S Version", Description: "Version of Kubernetes.", AfterAge: true, Value: func(s seed) any {
				if s.Status.KubernetesVersion == nil {
					return cell.Unknown
				}
				return *s.Status.KubernetesVersion
			}},
		},
		CopyStatus: func(to, from seed) { to.Status = from.Status },
		GenerationChanges: func(updated, old seed) bool {
			asked := operations.Requested(updated, old)
			return asked || differ(updated.Spec, old.Spec)
		},
		Validate:             validation.ValidateSeed,
		ValidateUpdate:       validation.ValidateSeedUpdate,
		ValidateStatusUpdate: validation.ValidateSeedStatusUpdate,
		Canonicalize: func(s seed) {
			s.Labels = withLabel(s.Labels, constants.LabelSeedProvider, s.Spec.Provider.Type)
			s.Labels = withLabel(s.Labels, constants.LabelSeedRegion, s.Spec.Provider.Region)
		},
	}
}

// seedHealth summarizes the conditions of a Seed. It ignores a missing backup condition, because a Seed without a backup
// does not have one.
func seedHealth(conditions []gardencorev1beta1.Condition) string {
	ready := func(condition gardencorev1beta1.Condition) bool {
		return condition.Type == gardencorev1beta1.SeedGardenletReady
	}
	switch i := slices.IndexFunc(conditions, ready); {
	case len(conditions) == 0, i >= 0 && conditions[i].Status == gardencorev1beta1.ConditionUnknown:
		return "Unknown"
	case i < 0:
		return "NotReady"
	}
	for _, of := range []gardencorev1beta1.ConditionType{
		gardencorev1beta1.SeedGardenletReady, gardencorev1beta1.SeedBackupBucketsReady,
		gardencorev1beta1.SeedExtensionsReady, gardencorev1beta1.SeedSystemComponentsHealthy,
	} {
		switch cell.Condition(conditions, of) {
		case cell.Unknown, string(gardencorev1beta1.ConditionTrue), string(gardencorev1beta1.ConditionProgressing):
		default:
			return "NotReady"
		}
	}
	return "Ready"
}
