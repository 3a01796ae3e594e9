package shoot

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rotation"
)

// paceAgain is how often a Shoot that waits for the rollout of a version of gardenlet is reconciled, if nothing triggers it before.
const paceAgain = 5 * time.Minute

// pacing returns how fast a new version of gardenlet is rolled out to Shoots: controllers.shoot.rollout, with its defaults.
func (o Options) pacing() flow.Pacing {
	defaults := &gardenletv1alpha1.GardenletConfiguration{}
	gardenletv1alpha1.SetDefaults(defaults)
	usual := defaults.Controllers.Shoot.Rollout
	set := ptr.Deref(o.controller().Rollout, *usual)
	return flow.Pacing{
		Budget: ptr.Deref(set.Budget, *usual.Budget), Nodes: ptr.Deref(set.Nodes, *usual.Nodes), MaxFailed: ptr.Deref(set.MaxFailed, *usual.MaxFailed),
		Retry: paceAgain,
	}
}

// changesNodes reports whether a bundle changes machines, or what nodes apply.
func changesNodes(bundle flow.Key) bool {
	return isMachine(bundle.Name) || bundle.Name == bundleNodeAgent || strings.HasPrefix(bundle.Name, prefixOperatingSystem)
}

// window returns the maintenance window of the Shoot, or nil if it has none.
func (in Inputs) window() *flow.Window {
	window, found := decisionInput{shoot: in.Shoot}.window()
	if !found {
		return nil
	}
	open, next := window.State(in.Now)
	return &flow.Window{Open: open, Opens: next}
}

// atOnce reports whether changes of a new version of gardenlet are applied without pacing: nothing runs, or a user waits
// for an operation, such as a step of a rotation.
func (in Inputs) atOnce() bool {
	return in.Deleting || in.hibernated() || isUnfinished(in.Shoot) || slices.ContainsFunc(cycles(in.rotation()), isUnderWay)
}

// isUnderWay reports whether the next step of a rotation is up to gardenlet, not the user.
func isUnderWay(c rotation.Cycle) bool {
	return !c.IsOver() && *c.Phase != corev1beta1.RotationPrepared &&
		(*c.Phase != corev1beta1.RotationWaitingForWorkersRollout || len(c.Waiting()) == 0)
}

// readAnnotations are the annotations of Shoots that change the control plane. Others, such as those of dashboards, do
// not count as declared by the user.
var readAnnotations = []string{
	constants.AnnotationControlPlaneScaleDownDisabled, constants.AnnotationAuthenticationIssuer,
	constants.AnnotationShootCloudConfigExecutionMaxDelaySeconds,
}

// digest returns a digest of what the user of the Shoot declares, and of the observed inputs that do not follow from it.
// A change of it is applied immediately. It excludes what operators declare, which is in the program. Of generated Secrets
// it covers only the time of the last renewal: their names also change if a version of gardenlet generates them
// differently.
func (in Inputs) digest() (string, error) {
	annotations := map[string]string{}
	for _, name := range readAnnotations {
		if value, found := in.Shoot.Annotations[name]; found {
			annotations[name] = value
		}
	}
	inputs := []any{in.Shoot.Spec, annotations, in.Deleting, in.ClusterIdentity, in.Addresses, in.Placement.spread()}
	for _, name := range slices.Sorted(maps.Keys(in.UserFiles)) {
		given := in.UserFiles[name]
		inputs = append(inputs, name, versionOf(given.ConfigMap), versionOf(given.Secret))
	}
	for _, name := range slices.Sorted(maps.Keys(in.References)) {
		referenced := in.References[name]
		inputs = append(inputs, name, versionOf(referenced.Secret), versionOf(referenced.ConfigMap), versionOf(referenced.WorkloadIdentity))
	}
	// Those that are not set are left out, so that the digest of other Shoots remains the same.
	if len(in.ingressAddresses) > 0 {
		inputs = append(inputs, in.ingressAddresses)
	}
	if in.ExposureClass != nil {
		inputs = append(inputs, versionOf(in.ExposureClass))
	}
	if exposed, err := in.exposed(); err == nil && exposed.Gateway != nil {
		inputs = append(inputs, in.ServiceIPs, in.routes(exposed).String())
	}
	if in.hasWorkers() {
		inputs = append(inputs, in.Machines.Infrastructure, in.Machines.UserData, in.Machines.Stamps)
	}
	if !in.LastRenewal.IsZero() {
		inputs = append(inputs, in.LastRenewal.UTC().Format(time.RFC3339)) // a string, so that the form of the inputs does not change
	}
	return flow.InputsDigest(inputs...)
}

// program returns a digest of what operators declare for many Shoots: images, gardenlet's configuration, the Seed and its
// nodes, the CloudProfile, the extensions and their webhooks. Changes are rolled out at the same pace as a new version of gardenlet.
func (in Inputs) program() (string, error) {
	seed := in.Seed
	inputs := []any{in.Images, seed.Spec, seed.Labels, seed.Annotations, seed.Status.KubernetesVersion, in.Nodes == 1, in.wantedExtensions()}
	if in.Config != nil {
		inputs = append(inputs, in.Config.LogLevel, in.Config.LogFormat, in.Config.SNI, in.Config.ExposureClassHandlers, in.recordTTL())
	}
	if profile := in.CloudProfile; profile != nil {
		inputs = append(inputs, profile.Spec, profile.Labels, profile.Annotations)
	}
	if len(in.Mutators) > 0 {
		if mutators := in.mutators(); len(mutators) > 0 {
			inputs = append(inputs, mutators)
		}
	}
	return flow.InputsDigest(inputs...)
}

// versionOf returns the UID and resource version of an object, or an empty string if it is nil. A digest of the contents
// of Secrets would leak information about them.
func versionOf[T any, P interface {
	*T
	client.Object
}](object P) string {
	if object == nil {
		return ""
	}
	return string(object.GetUID()) + " " + object.GetResourceVersion()
}
