// Package gardenlet deploys the gardenlets that Gardenlets of the virtual garden describe, until they have registered their Seeds. Then they
// upgrade themselves. It also raises the charts of Gardenlets that follow the operator.
package gardenlet

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenletdeployer"
)

const (
	// FlowName is the value of flow.LabelFlow on objects that the controller emits.
	FlowName = "operator-gardenlet"
	// class is the class of ManagedResources of the runtime cluster.
	class = "seed"
	// prefixSelfHosted begins the names of Gardenlets of self-hosted Shoots, which deploy themselves.
	prefixSelfHosted = "self-hosted-shoot-"
)

// Reasons of the condition SeedRegistered (Gardener).
const reasonReconciled, reasonReconciling, reasonFailed = "Reconciled", "Reconciling", "ReconcileError"

// action is what to do for a Gardenlet.
type action int

const (
	// ignore does nothing.
	ignore action = iota
	// deploy deploys the gardenlet.
	deploy
	// leave leaves the gardenlet to itself, because it has registered its Seed.
	leave
)

// decide returns what to do for a Gardenlet. The Seed exists already after the first deployment.
func decide(gardenlet *v1alpha1.Gardenlet, seedExists bool) action {
	switch {
	case strings.HasPrefix(gardenlet.Name, prefixSelfHosted), gardenlet.DeletionTimestamp != nil:
		return ignore
	case !seedExists, forced(gardenlet):
		return deploy
	}
	return leave
}

// forced reports whether the operation force-redeploy is requested.
func forced(gardenlet *v1alpha1.Gardenlet) bool {
	return gardenlet.Annotations[constants.AnnotationGardenerOperation] == constants.OperationForceRedeploy
}

// finding is the content of the condition SeedRegistered.
type finding struct {
	status          corev1beta1.ConditionStatus
	reason, message string
}

func failed(err error) finding {
	return finding{corev1beta1.ConditionFalse, reasonFailed, conditiontext.ForCondition(conditiontext.Stable(err.Error()))}
}

// keyOf returns the key of the bundle with the gardenlet of the runtime cluster. It differs from that with which the gardenlet upgrades itself.
func keyOf(namespace, name string) flow.Key {
	return flow.Key{Namespace: namespace, Name: gardenletdeployer.RuntimeName(name)}
}

func ownerOf(gardenlet *v1alpha1.Gardenlet) flow.Owner {
	return flow.Owner{Flow: FlowName, UID: gardenlet.UID, Namespace: gardenlet.Namespace, Name: gardenlet.Name}
}

// planFor returns the plan for a gardenlet in the runtime cluster. Its objects stay when the ManagedResource is deleted.
func planFor(namespace string, gardenlet *v1alpha1.Gardenlet, objects []client.Object) flow.Plan {
	return flow.Plan{Bundles: []flow.Bundle{{
		Key: keyOf(namespace, gardenlet.Name), Objects: objects,
		Spec: resourcesv1alpha1.ManagedResourceSpec{Class: ptr.To(class), KeepObjects: ptr.To(true)},
	}}}
}

// givingUp returns the plan for a gardenlet that upgrades itself.
func givingUp(namespace string, gardenlet *v1alpha1.Gardenlet) flow.Plan {
	return flow.Plan{Deleting: true, Tombstones: []flow.Tombstone{{Key: keyOf(namespace, gardenlet.Name)}}}
}

// addressOf returns the public URL of the API server of the virtual garden; empty if there is no Garden.
func addressOf(gardens []operatorv1alpha1.Garden) string {
	for i := range gardens {
		if domains := gardens[i].Spec.VirtualCluster.DNS.Domains; len(domains) > 0 {
			return "https://api." + domains[0].Name
		}
	}
	return ""
}

// followed returns the chart that a Gardenlet should have if it follows that of the operator; empty if it stays as it is.
func followed(gardenlet *v1alpha1.Gardenlet, chart string) string {
	if chart == "" || gardenlet.Labels[constants.LabelAutoUpdateGardenletHelmChartRef] != "true" || gardenlet.DeletionTimestamp != nil {
		return ""
	}
	if from := gardenlet.Spec.Deployment.Helm.OCIRepository; ptr.Deref(from.Ref, "") == chart {
		return ""
	}
	return chart
}

// deployed returns the condition after the gardenlet was deployed.
func deployed(gardenlet *v1alpha1.Gardenlet, step gardenletdeployer.Step) finding {
	if step.Missing != "" {
		return failed(fmt.Errorf("the gardenlet has no access to the garden: %s", step.Missing))
	}
	return finding{corev1beta1.ConditionProgressing, reasonReconciling, fmt.Sprintf(
		"The gardenlet is deployed, and has not registered Seed %s yet: see its log in its cluster.", gardenlet.Name)}
}
