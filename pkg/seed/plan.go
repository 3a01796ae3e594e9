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

// The names of the bundles, which are those of their ManagedResources. Those of components are Gardener's.
const (
	bundleNamespaces      = "seed-namespaces"
	bundleResourceManager = "gardener-resource-manager"
	bundleSystem          = "system"
	bundleNetworkPolicies = "network-policies"
	bundleIdentity        = "cluster-identity"
	bundleEtcdOperator    = "etcd-druid"
	bundleAutoscaler      = "vpa"
	bundleGardenletScaler = "gardenlet-vpa"
	// prefixDefinitions begins the names of the bundles with CustomResourceDefinitions.
	prefixDefinitions = "crds-"
	// prefixExtension begins the names of the bundles with one Extension each.
	prefixExtension = "seed-extension-"
)

// The groups of CustomResourceDefinitions.
const (
	definitionsManagedResources = prefixDefinitions + "managedresources"
	definitionsExtensions       = prefixDefinitions + "extensions"
	definitionsEtcd             = prefixDefinitions + "etcd"
	definitionsAutoscaling      = prefixDefinitions + "vpa"
)

// part is a line of the table of contents.
type part struct {
	name string
	// absent says why the Seed does not have the part; empty if it has it. A part that exists although it is absent is left as it is, unless
	// it is removed.
	absent string
	// removed has a part that is absent deleted.
	removed bool
	// objects are those of the part.
	objects func() ([]client.Object, error)
	// unknown says what of the part's inputs is not known yet; empty if all are.
	unknown string
	// needs are the parts that have to be ready first.
	needs []resourcesv1alpha1.Dependency
	// deletedAfter are the parts that have to be gone first; nil for those that need it.
	deletedAfter []string
	// adjust changes the bundle.
	adjust func(*flow.Bundle)
}

// contents is the table of contents: all that a Seed consists of, in the order in which it comes up.
func (in Inputs) contents() []part {
	operator := "" // brings what exists once in a cluster
	if in.operatorRuns() {
		operator = "the operator of the garden, or gardenadm, brings it"
	}
	references := in.referencesBundle()
	parts := []part{
		{name: bundleNamespaces, objects: in.namespaces, adjust: keepObjects},

		{name: definitionsManagedResources, absent: operator, objects: in.definitions(definitionsManagedResources), adjust: keepObjects, deletedAfter: []string{}},
		{name: definitionsExtensions, absent: in.only(!in.IsShoot), objects: in.definitions(definitionsExtensions), adjust: keepObjects, deletedAfter: lasting},
		{name: definitionsEtcd, absent: operator, objects: in.definitions(definitionsEtcd), adjust: keepObjects, deletedAfter: lasting},
		{name: definitionsAutoscaling, absent: in.withoutAutoscalingKinds(operator), objects: in.definitions(definitionsAutoscaling), adjust: keepObjects},

		{name: bundleResourceManager, absent: operator, objects: in.resourceManager, unknown: in.unknownSecrets(), adjust: appliesItself,
			needs: in.on(resourcesv1alpha1.UntilHealthy, bundleNamespaces, definitionsManagedResources, definitionsExtensions, definitionsEtcd, definitionsAutoscaling), deletedAfter: last},
		{name: bundleGardenletScaler, absent: in.withoutAutoscalingKinds(operator), objects: in.gardenletScaler, needs: in.on(resourcesv1alpha1.UntilHealthy, definitionsAutoscaling)},

		{name: bundleSystem, objects: in.system, needs: in.on(resourcesv1alpha1.UntilRolledOut, bundleResourceManager)},
		{name: bundleNetworkPolicies, objects: in.networkPolicies, unknown: in.unknownAPIServers(), needs: in.on(resourcesv1alpha1.UntilApplied, bundleSystem)},
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

// What a seed of Gardener has besides is not part of the table yet: see [Inactive].

// Order of deletion: definitions go when nothing else is left but the namespaces and the resource-manager.
var (
	lasting = []string{bundleSystem}
	last    = []string{definitionsExtensions, definitionsEtcd, bundleSystem}
)

// after returns what the definitions of a bundle are removed after.
func after(definitions string) []string {
	if definitions == definitionsAutoscaling {
		return nil // what needs them: the resource-manager, too
	}
	return lasting
}

// Plan is the flow of a Seed: a function of its inputs, and of nothing else.
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
		// It was emitted when the Seed had it. Others may rely on it, so it stays as it is.
		plan.Waits = append(plan.Waits, flow.Wait{Name: part.name + "-kept", Reason: part.absent, Holds: []flow.Key{key}})
	case part.unknown != "":
		plan.Waits = append(plan.Waits, flow.Wait{Name: part.name + "-known", Reason: part.unknown, Holds: []flow.Key{key}, Deadline: in.deadline()})
	default:
		bundle, err := in.bundle(part)
		if err != nil {
			// What is declared cannot be carried out. The other parts do not need it.
			plan.Waits = append(plan.Waits, flow.Wait{
				Name: part.name + "-valid", Reason: err.Error(), Holds: []flow.Key{key}, Deadline: in.Now, Code: corev1beta1.ErrorRetryableConfigurationProblem,
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

// on returns dependencies on parts that the Seed has.
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

// keepObjects has the objects of a bundle survive its ManagedResource, should that be deleted by hand.
func keepObjects(bundle *flow.Bundle) { bundle.Spec.KeepObjects = ptr.To(true) }

func appliesItself(bundle *flow.Bundle) { bundle.AppliesItself = true }

func (in Inputs) only(has bool) string {
	if has {
		return ""
	}
	return "gardenadm brings it"
}

// withoutAutoscaler says why the Seed has no Vertical Pod Autoscaler.
func (in Inputs) withoutAutoscaler() string {
	switch {
	case in.IsGarden:
		return "the operator of the garden brings it"
	case !in.autoscaling():
		return "settings.verticalPodAutoscaler.enabled is false"
	}
	return ""
}

// withoutAutoscalingKinds says why the flow does not define the kinds of the Vertical Pod Autoscaler. Once it has, they stay: other objects
// are of these kinds.
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
		return fmt.Sprintf("the identity of the cluster comes from its %s", in.IdentityOrigin)
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

// unknownSecrets says which Secrets the components lack.
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

// addWaits adds what all or several bundles wait for.
func (in Inputs) addWaits(plan *flow.Plan) {
	if why := in.checkVersion(); why != "" {
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "kubernetes-version", Reason: why, HoldsAll: true, Holds: in.Emitted, Deadline: in.Now, Code: corev1beta1.ErrorRetryableConfigurationProblem,
		})
	}
	if why := in.withoutAutoscaling(); why != "" {
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "vertical-pod-autoscaler", Reason: why, HoldsAll: true, Deadline: in.Now, Code: corev1beta1.ErrorRetryableConfigurationProblem,
		})
	}
	if why := in.bucketNotReady(); why != "" {
		plan.Waits = append(plan.Waits, flow.Wait{Name: "backup-bucket", Reason: why, Deadline: in.deadline()})
	}
	in.addExtensionWaits(plan)
	// A tombstone and a hold of one bundle contradict each other, and a hold that names a bundle of the plan twice says no more.
	for i := range plan.Waits {
		plan.Waits[i].Holds = slices.DeleteFunc(plan.Waits[i].Holds, func(key flow.Key) bool {
			return slices.ContainsFunc(plan.Tombstones, func(tombstone flow.Tombstone) bool { return tombstone.Key == key })
		})
	}
}

// withoutAutoscaling says why components cannot have objects of the Vertical Pod Autoscaler; empty if they can.
func (in Inputs) withoutAutoscaling() string {
	if in.autoscaling() || in.emitted(definitionsAutoscaling) || in.HasVerticalPodAutoscaler == nil || *in.HasVerticalPodAutoscaler {
		return ""
	}
	return "settings.verticalPodAutoscaler.enabled is false, and the seed does not know the kind VerticalPodAutoscaler: install a Vertical Pod Autoscaler, or enable the setting"
}

// bucketNotReady says why the BackupBucket of the Seed is not ready; empty if it is, or if the Seed has none.
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

// digest is that of what is declared, as opposed to what the program brings.
func (in Inputs) digest() (string, error) {
	return flow.InputsDigest(in.Seed.Spec, in.configured(), in.Deleting, in.KubernetesVersion, in.Identity, in.IsGarden, in.IsShoot)
}

// configured are the settings of gardenlet that bundles are made from. Others, such as its ports, change none of them.
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
