package care

import (
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/readiness"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Reasons of conditions (Gardener).
const (
	reasonHealthz       = "HealthzRequestSucceeded"
	reasonHealthzFailed = "HealthzRequestFailed"
	reasonServerDown    = "APIServerDown"
	reasonControlPlane  = "ControlPlaneRunning"
	reasonObservability = "ObservabilityComponentsRunning"
	reasonSystem        = "SystemComponentsRunning"
	reasonMissing       = "DeploymentMissing"
	reasonEtcdMissing   = "EtcdMissing"
)

const (
	messageHibernated    = "Shoot cluster has been hibernated."
	messageNotReconciled = "the components have not been deployed yet"
	messageNotServing    = "Shoot control plane is not running at the moment."
	// prefixEtcd is the prefix of the names of ManagedResources with an Etcd.
	prefixEtcd = "etcd-"
	// explainEvery limits how often the message of a condition is written while its status and reason remain the same,
	// because the message changes with each component that becomes ready.
	explainEvery = 10 * time.Second
)

// Conditions returns all conditions, and when they change without an event. A zero time means never.
func (o Observation) Conditions() ([]corev1beta1.Condition, time.Time) {
	conditions := slices.Clone(o.Shoot.Status.Conditions)
	var next time.Time
	for _, each := range o.checks() {
		found, changes := each.check()
		contributed, outdated := o.contributed(each.kind)
		found, changes = found.with(contributed...), requeue.Earlier(changes, outdated)
		if o.Hibernated {
			found, changes = finding{
				status: corev1beta1.ConditionTrue, reason: corev1beta1.ReasonConditionNotChecked, message: messageHibernated,
			}, time.Time{}
		}
		condition, until := o.condition(each.kind, found)
		conditions = corev1beta1.SetCondition(conditions, condition)
		next = requeue.Earlier(next, requeue.Earlier(until, changes))
	}
	return conditions, next
}

// check computes a condition, and when it changes without an event.
type check struct {
	kind  corev1beta1.ConditionType
	check func() (finding, time.Time)
}

// checks returns the checks of all conditions. A condition whose inputs are not known yet stays as it is.
func (o Observation) checks() []check {
	all := []check{
		{corev1beta1.ShootAPIServerAvailable, o.server},
		{corev1beta1.ShootControlPlaneHealthy, o.controlPlane},
		{corev1beta1.ShootObservabilityComponentsHealthy, o.observability},
		{corev1beta1.ShootSystemComponentsHealthy, o.system},
	}
	if hasWorkers(o.Shoot) {
		if _, known := o.everyNodeReady(); known {
			all = append(all, check{corev1beta1.ShootEveryNodeReady, o.nodes})
		}
	}
	return all
}

// finding is the result of a check.
type finding struct {
	status          corev1beta1.ConditionStatus
	reason, message string
	codes           []corev1beta1.ErrorCode
}

// severity orders findings. The worst one determines the condition.
func (f finding) severity() int {
	return slices.Index(
		[]corev1beta1.ConditionStatus{
			corev1beta1.ConditionTrue, corev1beta1.ConditionProgressing, corev1beta1.ConditionUnknown, corev1beta1.ConditionFalse,
		},
		f.status,
	)
}

// with combines findings. Status and reason are those of the first of the worst findings. Messages and codes are those of
// all findings with that status.
func (f finding) with(others ...finding) finding {
	worst := f
	for _, other := range others {
		if other.severity() > worst.severity() {
			worst = other
		}
	}
	var messages []string
	worst.codes = nil
	for _, each := range append([]finding{f}, others...) {
		if each.severity() == worst.severity() && (each.status != corev1beta1.ConditionTrue || len(messages) == 0) {
			messages, worst.codes = append(messages, each.message), append(worst.codes, each.codes...)
		}
	}
	slices.Sort(worst.codes)
	worst.message, worst.codes = strings.Join(messages, "; "), slices.Compact(worst.codes)
	return worst
}

// server checks whether the API server answers.
func (o Observation) server() (finding, time.Time) {
	switch {
	case !o.Asked:
		return finding{status: corev1beta1.ConditionFalse, reason: reasonServerDown, message: messageNotServing}, time.Time{}
	case o.Error != nil:
		message := "the request to the /healthz endpoint of the API server failed: " + readiness.Limited(o.Error.Error())
		return finding{status: corev1beta1.ConditionFalse, reason: reasonHealthzFailed, message: message}, time.Time{}
	}
	return finding{
		status: corev1beta1.ConditionTrue, reason: reasonHealthz, message: "API server /healthz endpoint responded with success status code.",
	}, time.Time{}
}

// controlPlane checks whether all required components exist, and whether the components of the control plane are healthy.
func (o Observation) controlPlane() (finding, time.Time) {
	components := o.countFor(corev1beta1.ShootControlPlaneHealthy)
	var missing []string
	for _, name := range o.Required {
		if !slices.ContainsFunc(o.Components, func(mr resourcesv1alpha1.ManagedResource) bool { return mr.Name == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		reason := reasonMissing
		if slices.ContainsFunc(missing, func(name string) bool { return strings.HasPrefix(name, prefixEtcd) }) {
			reason = reasonEtcdMissing
		}
		message := "missing components: " + strings.Join(missing, ", ")
		return finding{status: corev1beta1.ConditionFalse, reason: reason, message: message}, time.Time{}
	}
	return o.all(components, reasonControlPlane, "All control plane components are healthy.")
}

// observability checks the health of the components that monitor the control plane. Without such components the condition
// is True, as in Gardener.
func (o Observation) observability() (finding, time.Time) {
	components := o.countFor(corev1beta1.ShootObservabilityComponentsHealthy)
	return o.all(components, reasonObservability, "All observability components are healthy.")
}

// system checks the health of the components in the shoot cluster. It is unknown while the API server does not run,
// because their conditions are outdated.
func (o Observation) system() (finding, time.Time) {
	components := o.countFor(corev1beta1.ShootSystemComponentsHealthy)
	switch {
	case !o.Asked:
		return finding{
			status: corev1beta1.ConditionUnknown, reason: corev1beta1.ReasonConditionCheckError, message: messageNotServing,
		}, time.Time{}
	case len(components) == 0:
		return finding{
			status: corev1beta1.ConditionUnknown, reason: corev1beta1.ReasonConditionInitialized, message: messageNotReconciled,
		}, time.Time{}
	}
	found, next := o.all(components, reasonSystem, "All system components are healthy.")
	if broken := o.tunnel(); broken != nil {
		// It is named first, because other components fail without the tunnel.
		return broken.with(found), next
	}
	return found, next
}

// all checks whether all ManagedResources are applied, healthy and rolled out. It also returns when the result changes without an event.
func (o Observation) all(components []resourcesv1alpha1.ManagedResource, reason, message string) (finding, time.Time) {
	found, next := readiness.Rollout{Within: o.Limits.Rollout, Now: o.Now}.CheckAll(components)
	if found == nil {
		return finding{status: corev1beta1.ConditionTrue, reason: reason, message: message}, next
	}
	return finding{status: corev1beta1.ConditionFalse, reason: found.Reason, message: found.Message, codes: found.Codes}, next
}

// condition returns a condition with its timestamps, and when it changes without an event. A failure is reported as
// Progressing until its threshold has passed, while the Shoot is being created or deleted, and while an operation runs
// without errors.
func (o Observation) condition(kind corev1beta1.ConditionType, found finding) (corev1beta1.Condition, time.Time) {
	before := corev1beta1.FindCondition(o.Shoot.Status.Conditions, kind)
	status, next := found.status, time.Time{}
	if status == corev1beta1.ConditionFalse {
		status, next = corev1beta1.StatusOfFailure(before, found.reason, o.Shoot.Status.LastOperation, o.Limits.Thresholds[kind], o.Now)
	}
	if status == corev1beta1.ConditionFalse && o.failuresExpected() {
		status = corev1beta1.ConditionProgressing
	}
	found.status = status
	same := before != nil && before.Status == status && before.Reason == found.reason
	if same && (before.Message != found.message || !slices.Equal(before.Codes, found.codes)) {
		if at := before.LastUpdateTime.Add(explainEvery); o.Now.Before(at) {
			return *before, requeue.Earlier(next, at)
		}
	}
	return o.timed(before, kind, found), next
}

// timed returns a condition with its timestamps. before is nil if the condition is new.
func (o Observation) timed(before *corev1beta1.Condition, kind corev1beta1.ConditionType, found finding) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: kind, Status: found.status, Reason: found.reason, Message: found.message, Codes: found.codes,
	}
	return corev1beta1.KeepTimes(before, condition, o.Now)
}

// failuresExpected reports whether failures are expected because of the current operation.
func (o Observation) failuresExpected() bool {
	last := ptr.Deref(o.Shoot.Status.LastOperation, corev1beta1.LastOperation{})
	switch last.Type {
	case "":
		return true
	case corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationTypeDelete:
		return last.State != corev1beta1.LastOperationStateSucceeded
	}
	return last.State == corev1beta1.LastOperationStateProcessing && len(o.Shoot.Status.LastErrors) == 0
}
