package seed

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// The names of the bundles and their ManagedResources. Names of components are the same as in Gardener.
const (
	bundleNamespaces      = "seed-namespaces"
	bundleResourceManager = "gardener-resource-manager"
	bundleSystem          = "system"
	bundleNetworkPolicies = "network-policies"
	bundleIdentity        = "cluster-identity"
	bundleEtcdOperator    = "etcd-druid"
	bundleAutoscaler      = "vpa"
	bundleGardenletScaler = "gardenlet-vpa"
	// prefixDefinitions is the name prefix of the bundles with CustomResourceDefinitions.
	prefixDefinitions = "crds-"
	// prefixExtension is the name prefix of the bundles with one Extension each.
	prefixExtension = "seed-extension-"
)

// The groups of CustomResourceDefinitions.
const (
	definitionsManagedResources = prefixDefinitions + "managedresources"
	definitionsExtensions       = prefixDefinitions + "extensions"
	definitionsEtcd             = prefixDefinitions + "etcd"
	definitionsAutoscaling      = prefixDefinitions + "vpa"
)

// part is a row in the table of contents.
type part struct {
	name string
	// absent is why the Seed does not have the part; empty if it does. An existing part that is absent is kept unchanged,
	// unless removed is set.
	absent string
	// removed deletes the part if it is absent.
	removed bool
	// objects returns the objects of the part.
	objects func() ([]client.Object, error)
	// unknown names the inputs of the part that are not known yet; empty if all are known.
	unknown string
	// needs are the dependencies of the part.
	needs []resourcesv1alpha1.Dependency
	// deletedAfter are the parts that must be deleted first; nil for the parts that depend on it.
	deletedAfter []string
	// adjust changes the bundle.
	adjust func(*flow.Bundle)
}

// contents returns all parts of a Seed in the order in which they start.
func (in Inputs) contents() []part {
	operator := "" // why the components that exist once per cluster are absent
	if in.operatorRuns() {
		operator = "the garden operator or gardenadm deploys it"
	}
	references := in.referencesBundle()
	parts := []part{
		{name: bundleNamespaces, objects: in.namespaces, adjust: keepObjects},

		{name: definitionsManagedResources, absent: operator, objects: in.definitions(definitionsManagedResources),
			adjust: keepObjects, deletedAfter: []string{}},
		{name: definitionsExtensions, absent: in.exceptSelfHosted(), objects: in.definitions(definitionsExtensions),
			adjust: keepObjects, deletedAfter: afterSystem},
		{name: definitionsEtcd, absent: operator, objects: in.definitions(definitionsEtcd),
			adjust: keepObjects, deletedAfter: afterSystem},
		{name: definitionsAutoscaling, absent: in.withoutAutoscalingKinds(operator), objects: in.definitions(definitionsAutoscaling),
			adjust: keepObjects},

		{name: bundleResourceManager, absent: operator, objects: in.resourceManager, unknown: in.unknownSecrets(), adjust: appliesItself,
			needs: in.on(resourcesv1alpha1.UntilHealthy,
				bundleNamespaces, definitionsManagedResources, definitionsExtensions, definitionsEtcd, definitionsAutoscaling),
			deletedAfter: afterDefinitions},
		{name: bundleGardenletScaler, absent: in.withoutAutoscalingKinds(operator), objects: in.gardenletScaler,
			needs: in.on(resourcesv1alpha1.UntilHealthy, definitionsAutoscaling)},

		{name: bundleSystem, objects: in.system, needs: in.on(resourcesv1alpha1.UntilRolledOut, bundleResourceManager)},
		{name: bundleNetworkPolicies, objects: in.networkPolicies, unknown: in.unknownAPIServers(),
			needs: in.on(resourcesv1alpha1.UntilApplied, bundleSystem)},
		{name: references, absent: in.withoutReferences(), removed: true, objects: in.referenced, unknown: in.unknownReferences(),
			needs: in.on(resourcesv1alpha1.UntilApplied, bundleSystem)},

		{name: bundleIdentity, absent: in.identityOfOthers(), objects: in.clusterIdentity, unknown: in.unknownIdentity(),
			needs: in.on(resourcesv1alpha1.UntilApplied, bundleSystem), deletedAfter: []string{}},
	}
	parts = append(parts, in.extensionParts(references)...)
	return append(parts,
		part{name: bundleAutoscaler, absent: in.withoutAutoscaler(), removed: true, objects: in.autoscaler, unknown: in.unknownSecrets(),
			needs: in.on(resourcesv1alpha1.UntilApplied, bundleSystem, definitionsAutoscaling)},
		part{name: bundleEtcdOperator, absent: operator, objects: in.etcdOperator, unknown: in.unknownSecrets(),
			needs: in.on(resourcesv1alpha1.UntilApplied, bundleSystem, definitionsEtcd)},
	)
}

// Parts of a Gardener seed that the table does not contain yet are listed in [Inactive].

// Deletion order: definitions are deleted when only the namespaces and the resource-manager remain.
var (
	afterSystem      = []string{bundleSystem}
	afterDefinitions = []string{definitionsExtensions, definitionsEtcd, bundleSystem}
)

// after returns the bundles that must be deleted before a bundle of definitions.
func after(definitions string) []string {
	if definitions == definitionsAutoscaling {
		return nil // the bundles that depend on them, including the resource-manager
	}
	return afterSystem
}

// Plan is the flow of a Seed. It is a pure function of its inputs.
func Plan(in Inputs) (flow.Plan, error) {
	var err error
	plan := flow.Plan{Next: in.SecretsRenewed}
	if in.Deleting {
		plan = deletion(in)
	} else {
		for _, part := range in.contents() {
			in.add(&plan, part)
		}
		in.addWaits(&plan)
	}
	plan.Inputs, err = in.digest()
	return plan, err
}

// add adds a part to a plan.
func (in Inputs) add(plan *flow.Plan, part part) {
	key := in.key(part.name)
	switch {
	case part.absent != "" && !in.emitted(part.name):
	case part.absent != "" && part.removed:
		plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key})
	case part.absent != "":
		// The Seed had this part before. Other objects might rely on it, so it is kept.
		plan.Waits = append(plan.Waits, flow.Wait{Name: part.name + "-kept", Reason: part.absent, Holds: []flow.Key{key}})
	case part.unknown != "":
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: part.name + "-known", Reason: part.unknown, Holds: []flow.Key{key}, Deadline: in.deadline(),
		})
	default:
		bundle, err := in.bundle(part)
		if err != nil {
			// The declaration is invalid for this part. The other parts do not depend on it.
			plan.Waits = append(plan.Waits, flow.Wait{
				Name: part.name + "-valid", Reason: err.Error(), Holds: []flow.Key{key},
				Deadline: in.Now, Code: corev1beta1.ErrorRetryableConfigurationProblem,
			})
			return
		}
		plan.Bundles = append(plan.Bundles, bundle)
	}
}

func (in Inputs) bundle(part part) (flow.Bundle, error) {
	objects, err := part.objects()
	if err != nil {
		return flow.Bundle{}, err
	}
	bundle := flow.Bundle{
		Key: in.key(part.name), Objects: objects, Labels: map[string]string{constants.LabelGardenRole: constants.RoleSeedSystemComponent},
		Spec: resourcesv1alpha1.ManagedResourceSpec{Class: ptr.To(in.Class), DependsOn: part.needs},
	}
	if part.deletedAfter != nil {
		bundle.DeleteAfter = []flow.Key{}
		for _, name := range part.deletedAfter {
			bundle.DeleteAfter = append(bundle.DeleteAfter, in.key(name))
		}
	}
	if part.adjust != nil {
		part.adjust(&bundle)
	}
	return bundle, nil
}

// on returns dependencies on those of the named parts that the Seed has.
func (in Inputs) on(until resourcesv1alpha1.DependencyUntil, names ...string) []resourcesv1alpha1.Dependency {
	var needs []resourcesv1alpha1.Dependency
	for _, name := range names {
		if in.lacks(name) {
			continue
		}
		needs = append(needs, resourcesv1alpha1.Dependency{Namespace: in.Namespace, Name: name, Until: until})
	}
	return needs
}

// lacks reports whether the flow of the Seed does not emit a part that others need.
func (in Inputs) lacks(name string) bool {
	switch name {
	case bundleResourceManager, definitionsEtcd, definitionsManagedResources:
		return in.operatorRuns()
	case definitionsAutoscaling:
		return in.operatorRuns() || !in.autoscaling() && !in.emitted(name)
	case definitionsExtensions:
		return in.IsShoot
	}
	return false
}

// keepObjects keeps the objects of a bundle if its ManagedResource is deleted manually.
func keepObjects(bundle *flow.Bundle) { bundle.Spec.KeepObjects = ptr.To(true) }

func appliesItself(bundle *flow.Bundle) { bundle.AppliesItself = true }

// exceptSelfHosted returns why a part is absent in a self-hosted Shoot, empty for other seeds.
func (in Inputs) exceptSelfHosted() string {
	if in.IsShoot {
		return "gardenadm deploys it"
	}
	return ""
}

// withoutAutoscaler returns why the Seed has no Vertical Pod Autoscaler, empty if it has one.
func (in Inputs) withoutAutoscaler() string {
	switch {
	case in.IsGarden:
		return "the garden operator deploys it"
	case !in.autoscaling():
		return "settings.verticalPodAutoscaler.enabled is false"
	}
	return ""
}

// withoutAutoscalingKinds returns why the flow does not define the kinds of the Vertical Pod Autoscaler, empty if it
// does. Once defined they are kept, because other objects of these kinds exist.
func (in Inputs) withoutAutoscalingKinds(operator string) string {
	switch {
	case operator != "":
		return operator
	case in.lacks(definitionsAutoscaling):
		return "settings.verticalPodAutoscaler.enabled is false"
	}
	return ""
}

func (in Inputs) identityOfOthers() string {
	if in.IdentityOrigin != "" && in.IdentityOrigin != originSeed {
		return fmt.Sprintf("the identity of the cluster is managed by its %s", in.IdentityOrigin)
	}
	return ""
}

func (in Inputs) unknownIdentity() string {
	if in.Identity == "" {
		return "the identity of the cluster is not known"
	}
	return ""
}

func (in Inputs) unknownAPIServers() string {
	if len(in.APIServers) == 0 {
		return "the addresses of the seed's API server are not known"
	}
	return ""
}

// unknownSecrets names the Secrets that have not been generated yet, empty if all exist.
func (in Inputs) unknownSecrets() string {
	var missing []string
	for _, config := range in.secretConfigs() {
		if _, found := in.Secrets[config.Name]; !found {
			missing = append(missing, config.Name)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "secrets have not been generated: " + strings.Join(missing, ", ")
}

// addWaits adds the waits that concern all or several bundles.
func (in Inputs) addWaits(plan *flow.Plan) {
	if why := in.checkVersion(); why != "" {
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "kubernetes-version", Reason: why, HoldsAll: true, Holds: in.Emitted,
			Deadline: in.Now, Code: corev1beta1.ErrorRetryableConfigurationProblem,
		})
	}
	if why := in.withoutAutoscaling(); why != "" {
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "vertical-pod-autoscaler", Reason: why, HoldsAll: true,
			Deadline: in.Now, Code: corev1beta1.ErrorRetryableConfigurationProblem,
		})
	}
	if why := in.bucketNotReady(); why != "" {
		plan.Waits = append(plan.Waits, flow.Wait{Name: "backup-bucket", Reason: why, Deadline: in.deadline()})
	}
	in.addExtensionWaits(plan)
	// A plan must not hold a bundle that it deletes.
	for i := range plan.Waits {
		plan.Waits[i].Holds = slices.DeleteFunc(plan.Waits[i].Holds, func(key flow.Key) bool {
			return slices.ContainsFunc(plan.Tombstones, func(tombstone flow.Tombstone) bool { return tombstone.Key == key })
		})
	}
}

// withoutAutoscaling returns why components cannot have VerticalPodAutoscalers, empty if they can.
func (in Inputs) withoutAutoscaling() string {
	if in.autoscaling() || in.emitted(definitionsAutoscaling) || in.HasVerticalPodAutoscaler == nil || *in.HasVerticalPodAutoscaler {
		return ""
	}
	return "settings.verticalPodAutoscaler.enabled is false, and the seed does not know the kind VerticalPodAutoscaler: " +
		"install a Vertical Pod Autoscaler, or enable the setting"
}

// bucketNotReady returns why the BackupBucket of the Seed is not ready, empty if it is or if the Seed has none.
func (in Inputs) bucketNotReady() string {
	switch {
	case in.Seed.Spec.Backup == nil:
		return ""
	case in.Bucket == nil:
		return "BackupBucket " + BucketName(in.Seed) + " does not exist"
	case in.Bucket.Status.LastError != nil:
		return fmt.Sprintf("BackupBucket %s: %s", in.Bucket.Name, in.Bucket.Status.LastError.Description)
	case in.Bucket.Status.ObservedGeneration != in.Bucket.Generation || in.Bucket.Status.LastOperation == nil ||
		in.Bucket.Status.LastOperation.State != corev1beta1.LastOperationStateSucceeded:
		return fmt.Sprintf("BackupBucket %s is not ready", in.Bucket.Name)
	}
	return ""
}

// digest returns a digest of the declared inputs, as opposed to the parts that the program adds.
func (in Inputs) digest() (string, error) {
	return flow.InputsDigest(in.Seed.Spec, in.configured(), in.Deleting, in.KubernetesVersion, in.Identity, in.IsGarden, in.IsShoot)
}

// configured returns the settings of gardenlet that affect bundles. Other settings, such as ports, do not.
func (in Inputs) configured() []any {
	config := in.Config
	settings := []any{config.LogLevel, config.LogFormat, config.NodeToleration, config.FeatureGates["DefaultSeccompProfile"]}
	if controllers := config.Controllers; controllers != nil && controllers.NetworkPolicy != nil {
		settings = append(settings, controllers.NetworkPolicy.AdditionalNamespaceSelectors)
	}
	if etcd := config.ETCDConfig; etcd != nil && etcd.ETCDController != nil {
		settings = append(settings, etcd.ETCDController.Workers)
	}
	return settings
}
