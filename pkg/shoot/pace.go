package shoot

import (
	"maps"
	"slices"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// paceAgain is how often a Shoot asks again that waits for the rollout of a version of gardenlet, if nothing brings it back before.
const paceAgain = 5 * time.Minute

// pacing returns how fast a new version of gardenlet is rolled out over Shoots: controllers.shoot.rollout, with its defaults.
func (o Options) pacing() flow.Pacing {
	defaults := &gardenletv1alpha1.GardenletConfiguration{}
	gardenletv1alpha1.SetDefaults(defaults)
	usual := defaults.Controllers.Shoot.Rollout
	set := ptr.Deref(o.controller().Rollout, *usual)
	return flow.Pacing{Budget: ptr.Deref(set.Budget, *usual.Budget), MaxFailed: ptr.Deref(set.MaxFailed, *usual.MaxFailed), Retry: paceAgain}
}

// window returns the maintenance window of the Shoot; nil if it has none.
func (in Inputs) window() *flow.Window {
	if maintenance := in.Shoot.Spec.Maintenance; maintenance == nil || maintenance.TimeWindow == nil {
		return nil
	}
	open, next := looked{shoot: in.Shoot, now: in.Now}.window()
	return &flow.Window{Open: open, Opens: next}
}

// atOnce reports whether changes that only gardenlet makes are not paced: nothing runs, or users wait for an operation, such as a step of a rotation.
func (in Inputs) atOnce() bool {
	last := in.Shoot.Status.LastOperation
	return in.Deleting || in.hibernated() || last == nil || last.State != corev1beta1.LastOperationStateSucceeded ||
		in.Shoot.Status.ObservedGeneration != in.Shoot.Generation || slices.ContainsFunc(cycles(in.rotation()), cycle.isUnderWay)
}

// isUnderWay reports whether the next step of a rotation is gardenlet's, and not the user's.
func (c cycle) isUnderWay() bool { return !c.isOver() && *c.phase != corev1beta1.RotationPrepared }

// digest covers what is declared, and what is observed and does not follow from it. The configuration of gardenlet counts as a part of the program, with
// which it often changes: it is rolled out at the same pace. Of Secrets that are generated, it covers when one was renewed last. Their names would not do:
// they also change with what a version of gardenlet generates.
func (in Inputs) digest() (string, error) {
	inputs := []any{
		in.Shoot.Spec, in.Shoot.Annotations, in.Seed.Spec, in.Deleting, in.ClusterIdentity, in.extensionInputs(), in.Addresses, in.Nodes == 1, in.Placement.spread(),
	}
	if in.CloudProfile != nil {
		inputs = append(inputs, in.CloudProfile.Spec)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Given)) {
		given := in.Given[name]
		inputs = append(inputs, name, versionOf(given.ConfigMap), versionOf(given.Secret))
	}
	for _, name := range slices.Sorted(maps.Keys(in.References)) {
		referenced := in.References[name]
		inputs = append(inputs, name, versionOf(referenced.Secret), versionOf(referenced.ConfigMap), versionOf(referenced.WorkloadIdentity))
	}
	if !in.LastRenewal.IsZero() {
		inputs = append(inputs, in.LastRenewal.UTC().Format(time.RFC3339)) // a string: the form of the inputs stays the same
	}
	return flow.InputsDigest(inputs...)
}

// versionOf returns the version of an object; empty if it is not known. A digest of what Secrets contain would say something about it.
func versionOf[T any, P interface {
	*T
	client.Object
}](object P) string {
	if object == nil {
		return ""
	}
	return string(object.GetUID()) + " " + object.GetResourceVersion()
}
