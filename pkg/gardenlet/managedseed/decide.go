// Package managedseed is gardenlet's controller of ManagedSeeds: it deploys a gardenlet into each Shoot on its Seed that a ManagedSeed makes a
// Seed. What the Shoot gets is a ManagedResource in the namespace of its control plane, which the Shoot's resource-manager applies. Only the
// credentials of the new gardenlet are written directly. See docs/managed-seeds.md.
package managedseed

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenletdeployer"
	"github.com/trellis-k8s/trellis/pkg/readiness"
)

// FlowName is the value of flow.LabelFlow on objects that the controller emits.
const FlowName = "managedseed"

// Reasons of conditions (Gardener).
const (
	reasonReconciled, reasonReconciling, reasonFailed = "Reconciled", "Reconciling", "ReconcileError"
	reasonDeleting, reasonDeleteFailed, reasonRemoved = "Deleting", "DeleteError", "Deleted"
)

// finding is the content of a condition.
type finding struct {
	kind            corev1beta1.ConditionType
	status          corev1beta1.ConditionStatus
	reason, message string
}

func registered(status corev1beta1.ConditionStatus, reason, message string) finding {
	return finding{v1alpha1.SeedRegistered, status, reason, conditiontext.ForCondition(conditiontext.Stable(message))}
}

// shootReconciled returns the condition of the Shoot, which is nil if it is not on this Seed.
func shootReconciled(shoot *corev1beta1.Shoot, name string) finding {
	waiting := finding{v1alpha1.ManagedSeedShootReconciled, corev1beta1.ConditionFalse, reasonReconciling, ""}
	switch {
	case shoot == nil:
		waiting.message = fmt.Sprintf("Shoot %s is not on this Seed.", name)
	case shoot.Status.ObservedGeneration != shoot.Generation:
		waiting.message = fmt.Sprintf("Shoot %s has a change that is not reconciled yet.", name)
	case shoot.Status.LastOperation == nil:
		waiting.message = fmt.Sprintf("Shoot %s was not reconciled yet.", name)
	case shoot.Status.LastOperation.State != corev1beta1.LastOperationStateSucceeded:
		waiting.message = fmt.Sprintf("The operation %s of Shoot %s is %s.", shoot.Status.LastOperation.Type, name, shoot.Status.LastOperation.State)
	default:
		return finding{
			v1alpha1.ManagedSeedShootReconciled, corev1beta1.ConditionTrue, reasonReconciled, fmt.Sprintf("Shoot %s is reconciled.", name),
		}
	}
	return waiting
}

// The keys of the bundles, in the namespace of the control plane.
func namespaceKey(namespace string) flow.Key {
	return flow.Key{Namespace: namespace, Name: "managed-seed-namespace"}
}

func gardenletKey(namespace string) flow.Key {
	return flow.Key{Namespace: namespace, Name: "managed-seed-gardenlet"}
}

// ownerOf returns the owner of the bundles of a ManagedSeed.
func ownerOf(managed *v1alpha1.ManagedSeed) flow.Owner {
	return flow.Owner{Flow: FlowName, UID: managed.UID, Namespace: managed.Namespace, Name: managed.Name}
}

// planFor returns the plan for a ManagedSeed. objects are those of its gardenlet. It is not deployed while wait is set, because it would have no
// credentials.
func planFor(namespace string, objects []client.Object, wait string) flow.Plan {
	first, second := namespaceKey(namespace), gardenletKey(namespace)
	plan := flow.Plan{Bundles: []flow.Bundle{
		{Key: first, Objects: []client.Object{gardenletdeployer.Namespace(constants.GardenNamespace)}},
		{Key: second, Objects: objects, Spec: resourcesv1alpha1.ManagedResourceSpec{DependsOn: []resourcesv1alpha1.Dependency{flow.On(first)}}},
	}}
	if wait != "" {
		plan.Waits = []flow.Wait{{Name: "credentials", Reason: wait, Holds: []flow.Key{second}}}
	}
	return plan
}

// deletionPlan returns the plan that deletes the gardenlet and, afterwards, its namespace.
func deletionPlan(namespace string, last bool) flow.Plan {
	plan := flow.Plan{Deleting: true, Tombstones: []flow.Tombstone{{Key: gardenletKey(namespace)}}}
	if last {
		plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: namespaceKey(namespace)})
	}
	return plan
}

// seedRegistered returns the condition after the bundles were written. seed is nil if it does not exist. step is that for the credentials, and
// wait why the gardenlet is not deployed yet.
func seedRegistered(result flow.Result, seed *corev1beta1.Seed, step gardenletdeployer.Step, wait string) finding {
	var problems []string
	for _, texts := range []map[flow.Key]string{result.Problems, result.Pending} {
		for key, text := range texts {
			problems = append(problems, fmt.Sprintf("ManagedResource %s: %s", key, text))
		}
	}
	slices.Sort(problems)
	switch {
	case len(problems) > 0:
		return registered(corev1beta1.ConditionFalse, reasonFailed, strings.Join(problems, "; "))
	case step.Missing != "":
		return registered(corev1beta1.ConditionFalse, reasonFailed, "The gardenlet has no access to the garden: "+step.Missing+".")
	case wait != "":
		return registered(corev1beta1.ConditionProgressing, reasonReconciling, "The gardenlet is not deployed yet: "+wait+".")
	case len(result.Written) > 0:
		return registered(corev1beta1.ConditionProgressing, reasonReconciling, "The resource-manager of the Shoot has not observed the gardenlet yet.")
	}
	var live []resourcesv1alpha1.ManagedResource
	for _, bundle := range result.Plan.Bundles {
		if mr := result.Live.ManagedResources[bundle.Key]; mr != nil {
			live = append(live, *mr)
		}
	}
	switch problem := readiness.CheckAll(live); {
	case problem != nil:
		return registered(corev1beta1.ConditionProgressing, reasonReconciling, problem.Message)
	case seed == nil:
		return registered(corev1beta1.ConditionProgressing, reasonReconciling, "The gardenlet runs, and has not registered its Seed yet: see its log in the Shoot.")
	}
	return registered(corev1beta1.ConditionTrue, reasonReconciled, "The gardenlet runs in the Shoot, and its Seed is registered.")
}
