// Package selfupgrade is gardenlet's controller of its own Gardenlet: it pulls the chart that the Gardenlet names and emits its objects as a
// ManagedResource, which the resource-manager of the seed applies, so that the gardenlet replaces itself. If the Gardenlet is deleted, nothing
// changes. See docs/managed-seeds.md.
package selfupgrade

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
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
const FlowName = "gardenlet"

// class is the class of ManagedResources of the seed's resource-manager.
const class = "seed"

// Reasons of the condition GardenletReconciled (Gardener).
const reasonReconciled, reasonReconciling, reasonFailed = "Reconciled", "Reconciling", "ReconcileError"

// finding is the content of the condition GardenletReconciled.
type finding struct {
	status          corev1beta1.ConditionStatus
	reason, message string
}

func failed(text string) finding {
	return finding{corev1beta1.ConditionFalse, reasonFailed, conditiontext.ForCondition(conditiontext.Stable(text))}
}

// key is that of the bundle with the gardenlet.
var key = flow.Key{Namespace: constants.GardenNamespace, Name: gardenletdeployer.Release}

func ownerOf(gardenlet *v1alpha1.Gardenlet) flow.Owner {
	return flow.Owner{Flow: FlowName, UID: gardenlet.UID, Namespace: gardenlet.Namespace, Name: gardenlet.Name}
}

// planFor returns the plan for the objects of the gardenlet. They stay when the ManagedResource is deleted. wait is why the current revision
// stays; empty to emit the objects.
func planFor(objects []client.Object, wait string) flow.Plan {
	plan := flow.Plan{Bundles: []flow.Bundle{{
		Key: key, Objects: objects, Spec: resourcesv1alpha1.ManagedResourceSpec{Class: ptr.To(class), KeepObjects: ptr.To(true)},
	}}}
	if wait != "" {
		plan.Waits = []flow.Wait{{Name: "credentials", Reason: wait, Holds: []flow.Key{key}}}
	}
	return plan
}

// givingUp returns the plan for a Seed that is being deleted: the ManagedResource goes, and its objects stay.
func givingUp() flow.Plan {
	return flow.Plan{Deleting: true, Tombstones: []flow.Tombstone{{Key: key}}}
}

// reconciled returns the condition after the ManagedResource was written. wait is why it was not.
func reconciled(result flow.Result, chart, wait string) finding {
	for _, texts := range []map[flow.Key]string{result.Problems, result.Pending} {
		if text := texts[key]; text != "" {
			return failed(fmt.Sprintf("ManagedResource %s: %s", key, text))
		}
	}
	mr := result.Live.ManagedResources[key]
	switch {
	case wait != "":
		return failed("The gardenlet is not upgraded: " + wait + ".")
	case len(result.Written) > 0 || mr == nil || mr.Status.ObservedGeneration != mr.Generation:
		return finding{corev1beta1.ConditionProgressing, reasonReconciling, "The resource-manager has not observed the gardenlet of " + chart + " yet."}
	}
	problem := readiness.CheckAll([]resourcesv1alpha1.ManagedResource{*mr})
	if problem == nil {
		return finding{corev1beta1.ConditionTrue, reasonReconciled, "The gardenlet of " + chart + " is deployed."}
	}
	for _, kind := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
		if resourcesv1alpha1.ConditionOf(mr.Status.Conditions, kind).Status == resourcesv1alpha1.ConditionFalse {
			return failed("The upgrade to " + chart + " has failed, and the former gardenlet continues to run: " + problem.Message)
		}
	}
	return finding{corev1beta1.ConditionProgressing, reasonReconciling, problem.Message}
}

// ChartOf returns the reference of the chart of a Gardenlet, for messages.
func ChartOf(gardenlet *v1alpha1.Gardenlet) string {
	from := gardenlet.Spec.Deployment.Helm.OCIRepository
	parts := []string{ptr.Deref(from.Ref, "")}
	if parts[0] == "" {
		parts = []string{ptr.Deref(from.Repository, ""), ptr.Deref(from.Digest, ptr.Deref(from.Tag, ""))}
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ":")
}
