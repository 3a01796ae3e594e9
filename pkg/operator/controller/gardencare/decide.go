// Package gardencare maintains the conditions of a Garden: whether its API server answers, and whether its components are healthy. The
// latter are computed from the conditions of the watched ManagedResources.
package gardencare

import (
	"slices"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/readiness"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Reasons of conditions (Gardener).
const (
	reasonHealthz        = "HealthzRequestSucceeded"
	reasonHealthzFailed  = "HealthzRequestFailed"
	reasonServerDown     = "VirtualGardenAPIServerDown"
	reasonRuntimeRuns    = "RuntimeComponentsRunning"
	reasonVirtualRuns    = "VirtualComponentsRunning"
	reasonObserving      = "ObservabilityComponentsRunning"
	messageNotDeployed   = "no ManagedResource with such components exists yet"
	messageNotObservable = "this version deploys no components for logging and monitoring, and no ManagedResource is labelled as one"
)

// Observation is what the conditions depend on.
type Observation struct {
	Garden *operatorv1alpha1.Garden
	// Resources are the ManagedResources in the namespaces of the garden and of Istio.
	Resources []resourcesv1alpha1.ManagedResource
	// Connected is set if there is a kubeconfig for the virtual garden. ServerError is why its API server did not answer; nil if it did.
	Connected   bool
	ServerError error
	Thresholds  []gardenletv1alpha1.ConditionThreshold
	Now         time.Time
}

// check is one condition.
type check struct {
	kind corev1beta1.ConditionType
	// counts selects the ManagedResources.
	counts          func(*resourcesv1alpha1.ManagedResource) bool
	reason, message string
}

// checks are the conditions that follow from ManagedResources, selected by class and label as Gardener does.
func checks() []check {
	return []check{
		{
			operatorv1alpha1.RuntimeComponentsHealthy, func(mr *resourcesv1alpha1.ManagedResource) bool {
				label := mr.Labels[constants.LabelConditionType]
				return mr.Spec.Class != nil && *mr.Spec.Class != "" && (label == "" || label == string(operatorv1alpha1.RuntimeComponentsHealthy))
			}, reasonRuntimeRuns, "All components in the runtime cluster are healthy.",
		},
		{
			operatorv1alpha1.VirtualComponentsHealthy, func(mr *resourcesv1alpha1.ManagedResource) bool {
				return mr.Spec.Class == nil || *mr.Spec.Class == "" ||
					mr.Labels[constants.LabelConditionType] == string(operatorv1alpha1.VirtualComponentsHealthy)
			}, reasonVirtualRuns, "All components of the virtual garden are healthy.",
		},
		{
			operatorv1alpha1.ObservabilityComponentsHealthy, func(mr *resourcesv1alpha1.ManagedResource) bool {
				return mr.Labels[constants.LabelConditionType] == string(operatorv1alpha1.ObservabilityComponentsHealthy)
			}, reasonObserving, "All observability components are healthy.",
		},
	}
}

// Conditions returns the conditions of the Garden, and when they change without an event; zero for never.
func (o Observation) Conditions() ([]corev1beta1.Condition, time.Time) {
	all := slices.Clone(o.Garden.Status.Conditions)
	server, next := o.server()
	all = corev1beta1.SetCondition(all, server)
	for _, one := range checks() {
		condition, changes := o.components(one)
		all, next = corev1beta1.SetCondition(all, condition), requeue.Earlier(next, changes)
	}
	return all, next
}

func (o Observation) before(kind corev1beta1.ConditionType) *corev1beta1.Condition {
	return corev1beta1.FindCondition(o.Garden.Status.Conditions, kind)
}

// finish returns a condition from the result of its check.
func (o Observation) finish(success corev1beta1.Condition, problem *readiness.Problem) (corev1beta1.Condition, time.Time) {
	return readiness.Condition(o.before(success.Type), success, problem, o.Garden.Status.LastOperation,
		readiness.Threshold(o.Thresholds, success.Type), o.Now)
}

// server checks whether the API server of the virtual garden answers.
func (o Observation) server() (corev1beta1.Condition, time.Time) {
	var problem *readiness.Problem
	switch {
	case !o.Connected:
		problem = &readiness.Problem{Reason: reasonServerDown, Message: "there is no kubeconfig with a token for the virtual garden yet"}
	case o.ServerError != nil:
		problem = &readiness.Problem{
			Reason:  reasonHealthzFailed,
			Message: "the request to the /healthz endpoint of the API server failed: " + readiness.Limited(o.ServerError.Error()),
		}
	}
	return o.finish(corev1beta1.Condition{
		Type: operatorv1alpha1.VirtualGardenAPIServerAvailable, Reason: reasonHealthz,
		Message: "API server /healthz endpoint responded with success status code.",
	}, problem)
}

// components checks the ManagedResources of one condition.
func (o Observation) components(one check) (corev1beta1.Condition, time.Time) {
	var found []resourcesv1alpha1.ManagedResource
	for i := range o.Resources {
		if one.counts(&o.Resources[i]) {
			found = append(found, o.Resources[i])
		}
	}
	if len(found) > 0 {
		return o.finish(corev1beta1.Condition{Type: one.kind, Reason: one.reason, Message: one.message}, readiness.CheckAll(found))
	}
	none := corev1beta1.Condition{
		Type: one.kind, Status: corev1beta1.ConditionUnknown, Reason: corev1beta1.ReasonConditionInitialized, Message: messageNotDeployed,
	}
	if one.kind == operatorv1alpha1.ObservabilityComponentsHealthy {
		none.Status, none.Reason, none.Message = corev1beta1.ConditionTrue, corev1beta1.ReasonConditionNotChecked, messageNotObservable
	}
	return corev1beta1.KeepTimes(o.before(one.kind), none, o.Now), time.Time{}
}
