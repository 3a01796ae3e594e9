package readiness

import (
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// The values of [flow.LabelFlow] on ManagedResources of seeds that may be system components.
const (
	flowSeed         = "seed"
	flowInstallation = "controllerinstallation"
)

// IsSeedComponent reports whether a ManagedResource in the namespaces of a seed's system components is one of them. All
// of the Seed's flow are, and the extensions that the Seed itself requires. What other flows emit on behalf of Shoots,
// namespaces or backups is not, so that none of these affects the Seed. As in Gardener, a ManagedResource that no flow
// emitted is one if it has a class.
func IsSeedComponent(mr *resourcesv1alpha1.ManagedResource) bool {
	switch mr.Labels[flow.LabelFlow] {
	case flowSeed:
		return true
	case flowInstallation:
		return mr.Labels[constants.LabelGardenRole] == constants.RoleSeedSystemComponent
	case "":
		return mr.Spec.Class != nil && *mr.Spec.Class != ""
	}
	return false
}
