// Package extensioncare maintains the conditions of Extensions about their health: in Seeds, in the runtime cluster, and of their admission
// controllers. A condition that does not apply is absent.
package extensioncare

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/readiness"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Reasons of conditions (Gardener).
const (
	reasonInstallations = "ControllerInstallationsRunning"
	reasonRuntime       = "ExtensionComponentsRunning"
	reasonAdmission     = "ExtensionAdmissionComponentsRunning"
	reasonMissing       = "ManagedResourceMissing"
)

// Observation is what the conditions depend on.
type Observation struct {
	Extension *operatorv1alpha1.Extension
	// Installations are those of the garden; they may include those of other extensions.
	Installations []corev1beta1.ControllerInstallation
	// Resources are the ManagedResources of the extension, by name.
	Resources  map[string]*resourcesv1alpha1.ManagedResource
	Thresholds []gardenletv1alpha1.ConditionThreshold
	Now        time.Time
}

// Names returns the names of the ManagedResources that count for the health of an extension.
func Names(extension *operatorv1alpha1.Extension) (runtime string, admission []string) {
	if deployment := extension.Spec.Deployment; deployment != nil && deployment.AdmissionDeployment != nil {
		if one := deployment.AdmissionDeployment.RuntimeCluster; one != nil && one.Helm != nil {
			admission = append(admission, "extension-admission-runtime-"+extension.Name)
		}
		if one := deployment.AdmissionDeployment.VirtualCluster; one != nil && one.Helm != nil {
			admission = append(admission, "extension-admission-virtual-"+extension.Name)
		}
	}
	return "extension-" + extension.Name + "-garden", admission
}

// Apply sets the conditions that apply, and removes the others. The time is when one changes without an event; zero for never.
func (o Observation) Apply(conditions []corev1beta1.Condition) ([]corev1beta1.Condition, time.Time) {
	runtime, admission := Names(o.Extension)
	var next time.Time
	for _, one := range []struct {
		kind            corev1beta1.ConditionType
		applies         bool
		reason, message string
		check           func() *readiness.Problem
	}{
		{
			operatorv1alpha1.ExtensionControllerInstallationsHealthy, isTrue(conditions, operatorv1alpha1.ExtensionRequiredVirtual),
			reasonInstallations, "The extension is healthy in all Seeds.", o.installations,
		},
		{
			operatorv1alpha1.ExtensionRuntimeHealthy, isTrue(conditions, operatorv1alpha1.ExtensionRequiredRuntime),
			reasonRuntime, "The extension is healthy in the runtime cluster.", func() *readiness.Problem { return o.resources(runtime) },
		},
		{
			operatorv1alpha1.ExtensionAdmissionHealthy, len(admission) > 0,
			reasonAdmission, "The admission controller is healthy.", func() *readiness.Problem { return o.resources(admission...) },
		},
	} {
		if !one.applies {
			conditions = corev1beta1.RemoveCondition(conditions, one.kind)
			continue
		}
		condition, changes := readiness.Condition(corev1beta1.FindCondition(conditions, one.kind),
			corev1beta1.Condition{Type: one.kind, Reason: one.reason, Message: one.message}, one.check(), nil,
			readiness.Threshold(o.Thresholds, one.kind), o.Now)
		conditions, next = corev1beta1.SetCondition(conditions, condition), requeue.Earlier(next, changes)
	}
	return conditions, next
}

func isTrue(conditions []corev1beta1.Condition, kind corev1beta1.ConditionType) bool {
	condition := corev1beta1.FindCondition(conditions, kind)
	return condition != nil && condition.Status == corev1beta1.ConditionTrue
}

// resources checks ManagedResources.
func (o Observation) resources(names ...string) *readiness.Problem {
	var found []resourcesv1alpha1.ManagedResource
	for _, name := range names {
		if o.Resources[name] == nil {
			return &readiness.Problem{Reason: reasonMissing, Message: fmt.Sprintf("ManagedResource %s does not exist yet", name)}
		}
		found = append(found, *o.Resources[name])
	}
	return readiness.CheckAll(found)
}

// installations checks the ControllerInstallations of the extension.
func (o Observation) installations() *readiness.Problem {
	var texts []string
	reason := ""
	for i := range o.Installations {
		installation := &o.Installations[i]
		if installation.Spec.RegistrationRef.Name != o.Extension.Name {
			continue
		}
		for _, wanted := range []struct {
			kind   corev1beta1.ConditionType
			status corev1beta1.ConditionStatus
		}{
			{corev1beta1.ControllerInstallationValid, corev1beta1.ConditionTrue},
			{corev1beta1.ControllerInstallationInstalled, corev1beta1.ConditionTrue},
			{corev1beta1.ControllerInstallationHealthy, corev1beta1.ConditionTrue},
			{corev1beta1.ControllerInstallationProgressing, corev1beta1.ConditionFalse},
		} {
			condition := corev1beta1.FindCondition(installation.Status.Conditions, wanted.kind)
			if condition != nil && condition.Status == wanted.status {
				continue
			}
			text, why := "not reported yet", "Missing"+string(wanted.kind)
			if condition != nil {
				text, why = condition.Message, condition.Reason
			}
			if reason == "" {
				reason = why
			}
			texts = append(texts, fmt.Sprintf("ControllerInstallation %s, condition %s: %s", installation.Name, wanted.kind, readiness.Limited(text)))
			break
		}
	}
	if len(texts) == 0 {
		return nil
	}
	slices.Sort(texts)
	const most = 10
	if more := len(texts) - most; more > 0 {
		texts = append(texts[:most], fmt.Sprintf("and %d more", more))
	}
	return &readiness.Problem{Reason: reason, Message: strings.Join(texts, "; ")}
}
