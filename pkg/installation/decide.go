package installation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Inputs are the inputs of the decision for a Seed.
type Inputs struct {
	Seed          *corev1beta1.Seed
	Registrations []*corev1beta1.ControllerRegistration
	Deployments   []*gardencorev1.ControllerDeployment
	// Installations are the installations in the Seed.
	Installations []*corev1beta1.ControllerInstallation
	// Shoots and Entries may include those of other Seeds.
	Shoots []*corev1beta1.Shoot
	// Buckets are all BackupBuckets of the garden, because entries refer to them.
	Buckets []*corev1beta1.BackupBucket
	Entries []*corev1beta1.BackupEntry
	// DefaultDomains of the garden. They apply to Seeds without default domains.
	DefaultDomains []Domain
	// ResourceVersions of the Secrets and ConfigMaps to which deployments refer.
	ResourceVersions map[Resource]string
}

// Resource is a Secret or ConfigMap in namespace garden.
type Resource struct{ Kind, Name string }

// Action is an action on an installation.
type Action string

// The actions.
const (
	ActionCreate Action = "Create"
	ActionUpdate Action = "Update"
	ActionDelete Action = "Delete"
)

// Step is the creation, update or deletion of an installation.
type Step struct {
	Action Action
	// Installation is the object to write, with its resource version if it exists, or the object to delete.
	Installation *corev1beta1.ControllerInstallation
	// Reason why the registration is needed or not needed.
	Reason string
}

// Decision contains the steps after which a Seed has the extensions that it needs.
type Decision struct {
	// Steps are ordered by the name of the registration.
	Steps []Step
	// Kept are the reasons why installations that are not needed are retained, by name.
	Kept map[string]string
	// Problems describe errors in the objects of the garden, sorted.
	Problems []string
}

// Decide compares the extensions that a Seed needs with its installations. It is a pure function.
//
// It deletes nothing while objects of the garden have problems, or while gardenlet has not reported whether extension
// objects of the registration exist. These could not be deleted without their extension.
func Decide(in Inputs) Decision {
	required := RequiredIn(in)
	d := Decision{Kept: map[string]string{}, Problems: required.Problems}
	for _, name := range slices.Sorted(maps.Keys(required.Reasons)) {
		d.install(in, in.registration(name), required.Reasons[name])
	}
	d.findDoubles(in)
	slices.Sort(d.Problems)
	d.Problems = slices.Compact(d.Problems)
	for _, installation := range sortedByRegistration(in.Installations) {
		if required.Reasons[installation.Spec.RegistrationRef.Name] == "" {
			d.remove(in, installation)
		}
	}
	return d
}

// install decides on a registration that is needed.
func (d *Decision) install(in Inputs, registration *corev1beta1.ControllerRegistration, reason string) {
	before := in.installationOf(registration.Name)
	if before != nil && before.DeletionTimestamp != nil {
		d.Kept[before.Name] = "it is being deleted, and is created again afterwards"
		return
	}
	if before == nil && registration.DeletionTimestamp != nil {
		return
	}
	after, err := in.installation(registration, before)
	if err != nil {
		d.Problems = append(d.Problems, err.Error())
		return
	}
	switch {
	case before == nil:
		d.Steps = append(d.Steps, Step{ActionCreate, after, reason})
	case !same(before, after):
		d.Steps = append(d.Steps, Step{ActionUpdate, after, reason})
	}
}

// same reports whether an installation has the wanted content. The resource versions of referenced objects only count as
// far as hashes and resources do, because the version of a Seed also changes with its status.
func same(before, after *corev1beta1.ControllerInstallation) bool {
	name := func(installation *corev1beta1.ControllerInstallation) string {
		if installation.Spec.DeploymentRef == nil {
			return ""
		}
		return installation.Spec.DeploymentRef.Name
	}
	return name(before) == name(after) && equality.Semantic.DeepEqual(before.Spec.ResourceRefs, after.Spec.ResourceRefs) &&
		maps.Equal(before.Labels, after.Labels) && maps.Equal(before.Annotations, after.Annotations)
}

// remove decides on an installation that is not needed.
func (d *Decision) remove(in Inputs, installation *corev1beta1.ControllerInstallation) {
	name := installation.Name
	switch required := isRequired(installation); {
	case installation.DeletionTimestamp != nil:
	case len(d.Problems) > 0:
		d.Kept[name] = "it is not needed, but is retained until the problems are solved"
	case required == corev1beta1.ConditionTrue && !in.excludes(installation):
		d.Kept[name] = "extension objects of its kinds and types exist in the Seed"
	case required == corev1beta1.ConditionUnknown && in.registration(installation.Spec.RegistrationRef.Name) != nil &&
		isKnownToGardenlet(installation):
		d.Kept[name] = "gardenlet has not reported whether extension objects of its kinds and types exist in the Seed"
	default:
		d.Steps = append(d.Steps, Step{ActionDelete, installation, "nothing in the Seed needs it"})
	}
}

// excludes reports whether the registration of an installation exists but does not select the Seed. In this case
// RequiredIn has decided that it is not needed although extension objects exist.
func (in Inputs) excludes(installation *corev1beta1.ControllerInstallation) bool {
	return in.registration(installation.Spec.RegistrationRef.Name) != nil
}

// isKnownToGardenlet reports whether a gardenlet has started to handle an installation.
func isKnownToGardenlet(installation *corev1beta1.ControllerInstallation) bool {
	return slices.Contains(installation.Finalizers, constants.FinalizerControllerInstallation) || len(installation.Status.Conditions) > 0
}

// isRequired returns the status of the condition Required, or Unknown if it is not set.
func isRequired(installation *corev1beta1.ControllerInstallation) corev1beta1.ConditionStatus {
	for _, condition := range installation.Status.Conditions {
		if condition.Type == corev1beta1.ControllerInstallationRequired {
			return condition.Status
		}
	}
	return corev1beta1.ConditionUnknown
}

// findDoubles reports registrations with more than one installation.
func (d *Decision) findDoubles(in Inputs) {
	for _, installation := range in.Installations {
		first := in.installationOf(installation.Spec.RegistrationRef.Name)
		if first != installation && installation.DeletionTimestamp == nil && first.DeletionTimestamp == nil {
			d.Problems = append(d.Problems, fmt.Sprintf(
				"ControllerRegistration %s has the ControllerInstallations %s and %s in Seed %s: delete the second one",
				installation.Spec.RegistrationRef.Name, first.Name, installation.Name, in.Seed.Name))
		}
	}
}

// installationOf returns the oldest installation of a registration, or nil if there is none.
func (in Inputs) installationOf(registration string) *corev1beta1.ControllerInstallation {
	var first *corev1beta1.ControllerInstallation
	for _, installation := range in.Installations {
		if installation.Spec.RegistrationRef.Name == registration && (first == nil || compareAge(installation, first) < 0) {
			first = installation
		}
	}
	return first
}

// compareAge orders installations by age, then by name.
func compareAge(a, b *corev1beta1.ControllerInstallation) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func sortedByRegistration(installations []*corev1beta1.ControllerInstallation) []*corev1beta1.ControllerInstallation {
	return slices.SortedFunc(slices.Values(installations), func(a, b *corev1beta1.ControllerInstallation) int {
		return cmp.Or(cmp.Compare(a.Spec.RegistrationRef.Name, b.Spec.RegistrationRef.Name), cmp.Compare(a.Name, b.Name))
	})
}

// registration returns the registration with a name, or nil.
func (in Inputs) registration(name string) *corev1beta1.ControllerRegistration {
	for _, registration := range in.Registrations {
		if registration.Name == name {
			return registration
		}
	}
	return nil
}

// deployment returns the deployment with a name, or nil.
func (in Inputs) deployment(name string) *gardencorev1.ControllerDeployment {
	for _, deployment := range in.Deployments {
		if deployment.Name == name {
			return deployment
		}
	}
	return nil
}
