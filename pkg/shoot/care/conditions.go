// Package care keeps the conditions of Shoots: whether the API server answers, and how the components of the control plane and of the cluster are.
// The latter are computed from the conditions of ManagedResources, which are watched. Only API servers are asked, each at its period.
package care

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/readiness"
)

// Reasons of conditions (Gardener).
const (
	reasonHealthz        = "HealthzRequestSucceeded"
	reasonHealthzFailed  = "HealthzRequestFailed"
	reasonServerDown     = "APIServerDown"
	reasonControlPlane   = "ControlPlaneRunning"
	reasonSystem         = "SystemComponentsRunning"
	reasonMissing        = "DeploymentMissing"
	reasonNotChecked     = "ConditionNotChecked"
	messageHibernated    = "Shoot cluster has been hibernated."
	messageNotReconciled = "the components have not been deployed yet"
)

// Observation is what the conditions of a Shoot are computed from.
type Observation struct {
	Shoot *corev1beta1.Shoot
	// Hibernated is set if the Shoot hibernates or is to.
	Hibernated bool
	// ControlPlane and System are the ManagedResources of the control plane and of the cluster's own components.
	ControlPlane, System []resourcesv1alpha1.ManagedResource
	// Required are the names of those that a control plane has to have.
	Required []string
	// Asked is set if the API server was asked for its health, with the error, which is nil if it answered well.
	Asked bool
	Error error
	// Thresholds are how long a failed check shows as Progressing, by type.
	Thresholds map[corev1beta1.ConditionType]time.Duration
	Now        time.Time
}

// sorted gives the components an order, so that the same ones give the same texts.
func (o Observation) sorted() Observation {
	for _, list := range [][]resourcesv1alpha1.ManagedResource{o.ControlPlane, o.System} {
		slices.SortFunc(list, func(a, b resourcesv1alpha1.ManagedResource) int { return strings.Compare(a.Name, b.Name) })
	}
	return o
}

// Conditions returns all conditions, and when they change without an event; zero for never.
func (o Observation) Conditions() ([]corev1beta1.Condition, time.Time) {
	conditions := slices.Clone(o.Shoot.Status.Conditions)
	var next time.Time
	for _, each := range []struct {
		kind    corev1beta1.ConditionType
		verdict func() (verdict, bool)
	}{
		{corev1beta1.ShootAPIServerAvailable, o.server},
		{corev1beta1.ShootControlPlaneHealthy, o.controlPlane},
		{corev1beta1.ShootSystemComponentsHealthy, o.system},
	} {
		found, known := each.verdict()
		if o.Hibernated {
			found, known = verdict{status: corev1beta1.ConditionTrue, reason: reasonNotChecked, message: messageHibernated}, true
		}
		if !known {
			continue
		}
		condition, until := o.condition(each.kind, found)
		conditions = set(conditions, condition)
		if !until.IsZero() && (next.IsZero() || until.Before(next)) {
			next = until
		}
	}
	return conditions, next
}

// verdict is what a check found.
type verdict struct {
	status          corev1beta1.ConditionStatus
	reason, message string
	codes           []corev1beta1.ErrorCode
}

// server says whether the API server answers. It is not known before it was asked.
func (o Observation) server() (verdict, bool) {
	switch {
	case !o.Asked:
		return verdict{status: corev1beta1.ConditionFalse, reason: reasonServerDown, message: "the API server is not expected to answer yet"}, o.Shoot.Status.LastOperation != nil
	case o.Error != nil:
		return verdict{status: corev1beta1.ConditionFalse, reason: reasonHealthzFailed, message: "the API server does not answer well to /healthz: " + readiness.Limited(o.Error.Error())}, true
	}
	return verdict{status: corev1beta1.ConditionTrue, reason: reasonHealthz, message: "API server /healthz endpoint responded with success status code."}, true
}

func (o Observation) controlPlane() (verdict, bool) {
	var missing []string
	for _, name := range o.Required {
		if !slices.ContainsFunc(o.ControlPlane, func(mr resourcesv1alpha1.ManagedResource) bool { return mr.Name == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return verdict{status: corev1beta1.ConditionFalse, reason: reasonMissing, message: "missing components: " + strings.Join(missing, ", ")}, true
	}
	return all(o.ControlPlane, reasonControlPlane, "All control plane components are healthy."), true
}

func (o Observation) system() (verdict, bool) {
	if len(o.System) == 0 {
		return verdict{status: corev1beta1.ConditionUnknown, reason: corev1beta1.ReasonConditionInitialized, message: messageNotReconciled}, true
	}
	return all(o.System, reasonSystem, "All system components are healthy."), true
}

// all says whether all ManagedResources are applied, healthy and rolled out.
func all(components []resourcesv1alpha1.ManagedResource, reason, message string) verdict {
	found := readiness.CheckAll(components)
	if found == nil {
		return verdict{status: corev1beta1.ConditionTrue, reason: reason, message: message}
	}
	return verdict{status: corev1beta1.ConditionFalse, reason: found.Reason, message: found.Message, codes: found.Codes}
}

// condition returns a condition with its times, and when it changes without an event. A failure shows as Progressing for its threshold, and as long as
// the Shoot is created or deleted, or an operation is under way without errors.
func (o Observation) condition(kind corev1beta1.ConditionType, found verdict) (corev1beta1.Condition, time.Time) {
	before := find(o.Shoot.Status.Conditions, kind)
	status, next := found.status, time.Time{}
	if status == corev1beta1.ConditionFalse {
		status, next = o.failing(before, kind, found.reason)
	}
	if status == corev1beta1.ConditionFalse && o.pardoned() {
		status = corev1beta1.ConditionProgressing
	}
	now := metav1.NewTime(o.Now)
	condition := corev1beta1.Condition{Type: kind, Status: status, Reason: found.reason, Message: found.message, Codes: found.codes, LastTransitionTime: now, LastUpdateTime: now}
	if before != nil && before.Status == status {
		condition.LastTransitionTime = before.LastTransitionTime
		if before.Reason == condition.Reason && before.Message == condition.Message && slices.Equal(before.Codes, condition.Codes) {
			condition.LastUpdateTime = before.LastUpdateTime
		}
	}
	return condition, next
}

// failing returns Progressing while a failure is younger than the threshold, and when that ends.
func (o Observation) failing(before *corev1beta1.Condition, kind corev1beta1.ConditionType, reason string) (corev1beta1.ConditionStatus, time.Time) {
	threshold := o.Thresholds[kind]
	if threshold <= 0 || before == nil {
		return corev1beta1.ConditionFalse, time.Time{}
	}
	var until time.Time
	if last := o.Shoot.Status.LastOperation; last != nil && last.State == corev1beta1.LastOperationStateSucceeded {
		until = last.LastUpdateTime.Add(threshold)
	}
	switch {
	case before.Status == corev1beta1.ConditionTrue, before.Status == corev1beta1.ConditionFalse && before.Reason != reason:
		until = o.Now.Add(threshold)
	case before.Status == corev1beta1.ConditionProgressing:
		if since := before.LastTransitionTime.Add(threshold); since.After(until) {
			until = since
		}
	}
	if o.Now.Before(until) {
		return corev1beta1.ConditionProgressing, until
	}
	return corev1beta1.ConditionFalse, time.Time{}
}

// pardoned reports whether failures are expected.
func (o Observation) pardoned() bool {
	last := ptr.Deref(o.Shoot.Status.LastOperation, corev1beta1.LastOperation{})
	switch last.Type {
	case "":
		return true
	case corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationTypeDelete:
		return last.State != corev1beta1.LastOperationStateSucceeded
	}
	return last.State == corev1beta1.LastOperationStateProcessing && len(o.Shoot.Status.LastErrors) == 0
}

func find(conditions []corev1beta1.Condition, kind corev1beta1.ConditionType) *corev1beta1.Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// set puts a condition in its place in a list.
func set(conditions []corev1beta1.Condition, condition corev1beta1.Condition) []corev1beta1.Condition {
	if existing := find(conditions, condition.Type); existing != nil {
		*existing = condition
		return conditions
	}
	return append(conditions, condition)
}
