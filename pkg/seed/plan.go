package seed

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/inventory"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// The names of the bundles and their ManagedResources. Names of components are the same as in Gardener.
const (
	bundleNamespaces      = "seed-namespaces"
	bundleResourceManager = inventory.ResourceManager
	bundleSystem          = "system"
	bundleNetworkPolicies = inventory.NetworkPolicies
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

// contents returns the table of contents of a Seed: all its parts in the order in which they start.
func (in Inputs) contents() table.Table {
	operator := in.exceptSelfHosted() // why the components that exist once per cluster are absent
	secrets, references := in.unknownSecrets(), in.referencesBundle()
	afterBase := []table.Need{table.Applied(bundleSystem)}
	parts := []table.Part{
		{Name: bundleNamespaces, Objects: in.namespaces, Adjust: in.handsOver(schema.GroupKind{Kind: "Namespace"}, Inputs.namespaces)},

		{Name: definitionsManagedResources, Absent: operator, Objects: in.definitions(definitionsManagedResources),
			Adjust: keepObjects, DeletedAfter: []string{}},
		{Name: definitionsExtensions, Absent: in.exceptSelfHosted(), Objects: in.definitions(definitionsExtensions),
			Adjust: in.handsOver(object.Definition, Inputs.extensionKinds), DeletedAfter: afterSystem},
		{Name: definitionsEtcd, Absent: operator, Objects: in.definitions(definitionsEtcd),
			Adjust: keepObjects, DeletedAfter: afterSystem},
		{Name: definitionsAutoscaling, Absent: in.withoutAutoscalingKinds(operator),
			Objects: in.definitions(definitionsAutoscaling), Adjust: keepObjects},

		{Name: bundleResourceManager, Absent: operator, Objects: in.resourceManager, Unknown: secrets, Adjust: appliesItself,
			Needs: []table.Need{table.Healthy(
				bundleNamespaces, definitionsManagedResources, definitionsExtensions, definitionsEtcd, definitionsAutoscaling)},
			DeletedAfter: afterDefinitions},
		{Name: bundleGardenletScaler, Absent: in.withoutAutoscalingKinds(in.othersAutoscale()), Objects: in.gardenletScaler,
			Needs: []table.Need{table.Healthy(definitionsAutoscaling)}},

		{Name: bundleSystem, Objects: in.system, Needs: []table.Need{table.RolledOut(bundleResourceManager)}},
		{Name: bundleNetworkPolicies, Objects: in.networkPolicies, Unknown: in.unknownAPIServers(), Needs: afterBase},
		{Name: references, Absent: in.withoutReferences(), Removed: true, Objects: in.referenced, Unknown: in.unknownReferences(),
			Needs: afterBase},

		{Name: bundleIdentity, Absent: in.identityOfOthers(), Objects: in.clusterIdentity, Unknown: in.unknownIdentity(),
			Needs: afterBase, DeletedAfter: []string{}},
	}
	parts = append(slices.Concat(parts, in.exposureParts(), in.ingressParts(), in.extensionParts(references)),
		table.Part{Name: bundleAutoscaler, Absent: in.withoutAutoscaler(), Removed: true,
			Objects: in.autoscaler, Unknown: secrets,
			Needs: []table.Need{table.Applied(bundleSystem, definitionsAutoscaling)}},
		table.Part{Name: bundleEtcdOperator, Absent: operator, Objects: in.etcdOperator, Unknown: secrets,
			Needs: []table.Need{table.Applied(bundleSystem, definitionsEtcd)}},
	)
	for i := range parts {
		if in.isOperators(parts[i].Name) {
			parts[i].Absent, parts[i].Released = "the garden operator deploys it", true
		}
	}
	return table.Table{
		Parts: parts, Key: in.key, Prepare: in.prepare, Emitted: in.Emitted, Now: in.Now, Deadline: in.deadline(),
	}
}

// Parts of a Gardener seed that the table does not contain yet are listed in [Inactive].

// Deletion order: definitions are deleted when only the namespaces and the resource-manager remain.
var (
	afterSystem      = []string{bundleSystem}
	afterDefinitions = []string{definitionsExtensions, definitionsEtcd, bundleSystem}
)

// Plan is the flow of a Seed. It is a pure function of its inputs.
func Plan(in Inputs) (flow.Plan, error) {
	var err error
	plan := flow.Plan{Next: in.SecretsRenewed}
	if in.Deleting {
		plan = deletion(in)
	} else {
		in.contents().AddAll(&plan)
		in.addWaits(&plan)
	}
	plan.Inputs, err = in.digest()
	return plan, err
}

// prepare sets what all bundles of the Seed have.
func (in Inputs) prepare(_ table.Target, bundle *flow.Bundle) {
	bundle.Spec.Class = ptr.To(in.Class)
	bundle.Labels = map[string]string{constants.LabelGardenRole: constants.RoleSeedSystemComponent}
}

// keepObjects keeps the objects of a bundle if its ManagedResource is deleted manually.
func keepObjects(bundle *flow.Bundle) { bundle.Spec.KeepObjects = ptr.To(true) }

// handsOver keeps the objects of a bundle when the Seed is deleted. In a seed that is also the garden, those that a bundle leaves to the operator may
// leave it. They have the annotation that keeps them.
func (in Inputs) handsOver(kind schema.GroupKind, objects func(Inputs) ([]client.Object, error)) func(*flow.Bundle) {
	return func(bundle *flow.Bundle) {
		keepObjects(bundle)
		if !in.IsGarden {
			return
		}
		alone := in
		alone.IsGarden = false
		all, err := objects(alone)
		if err != nil {
			return // the objects of the bundle have the same error
		}
		for _, one := range all {
			bundle.Removes = append(bundle.Removes, object.Key{Group: kind.Group, Kind: kind.Kind, Namespace: one.GetNamespace(), Name: one.GetName()})
		}
	}
}

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
	if !in.autoscaling() {
		return "settings.verticalPodAutoscaler.enabled is false"
	}
	return ""
}

// withoutAutoscalingKinds returns why the flow does not define the kinds of the Vertical Pod Autoscaler, empty if it
// does. Once defined they are kept, because other objects of these kinds exist.
func (in Inputs) withoutAutoscalingKinds(operator string) string {
	if operator == "" && !in.autoscaling() && !in.emitted(definitionsAutoscaling) {
		return "settings.verticalPodAutoscaler.enabled is false"
	}
	return operator
}

// othersAutoscale returns why the flow does not know whether the cluster has a Vertical Pod Autoscaler, empty if it does.
func (in Inputs) othersAutoscale() string {
	if in.operatorRuns() {
		return "the garden operator or gardenadm deploys the Vertical Pod Autoscaler"
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

// unknownSecrets names the Secrets that have not been generated yet, empty if all are.
func (in Inputs) unknownSecrets() string { return secrets.Missing(in.secretConfigs(), in.Secrets) }

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
	if why := in.otherVersion(); why != "" {
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "operator-version", Reason: why, Deadline: in.deadline(), Code: corev1beta1.ErrorRetryableConfigurationProblem,
		})
	}
	if _, err := exposure.ModeOf(in.Seed); err != nil {
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "exposure", Reason: err.Error(), Deadline: in.Now, Code: corev1beta1.ErrorConfigurationProblem,
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

// otherVersion returns that the garden operator of the cluster has another version than this gardenlet, empty if it has not. Both manage
// components of one cluster, and must be updated together.
func (in Inputs) otherVersion() string {
	if !in.IsGarden || in.OperatorVersion == "" || in.Version == "" || in.OperatorVersion == in.Version {
		return ""
	}
	return fmt.Sprintf("the seed is also the runtime cluster of a garden, whose operator has version %s, but this gardenlet has version %s: "+
		"update both to the same version", in.OperatorVersion, in.Version)
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
	return flow.InputsDigest(in.Seed.Spec, in.Seed.Annotations[constants.AnnotationSeedExposure], in.configured(), in.Deleting, in.KubernetesVersion, in.Identity, in.IsGarden, in.IsShoot, in.HasIstio)
}

// configured returns the settings of gardenlet that affect bundles. Other settings, such as ports, do not.
func (in Inputs) configured() []any {
	config := in.Config
	settings := []any{config.LogLevel, config.LogFormat, config.NodeToleration, config.FeatureGates["DefaultSeccompProfile"], config.SNI, config.ExposureClassHandlers}
	if controllers := config.Controllers; controllers != nil && controllers.NetworkPolicy != nil {
		settings = append(settings, controllers.NetworkPolicy.AdditionalNamespaceSelectors)
	}
	if etcd := config.ETCDConfig; etcd != nil && etcd.ETCDController != nil {
		settings = append(settings, etcd.ETCDController.Workers)
	}
	return settings
}
