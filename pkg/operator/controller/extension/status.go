package extension

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/readiness"
)

// Reasons of the condition Installed (Gardener).
const (
	reasonNoGarden     = "NoGardenFound"
	reasonSuccessful   = "ReconcileSuccessful"
	reasonFailed       = "ReconcileFailed"
	reasonReconciling  = "Reconciling"
	reasonInRuntime    = "InstalledInRuntime"
	reasonDeleting     = "Deleting"
	reasonDeleted      = "DeleteSuccessful"
	reasonDeleteFailed = "DeleteFailed"

	messageNoGarden = "There is no Garden: the extension is installed once there is one."
)

// finding is the content of the condition Installed.
type finding struct {
	status          corev1beta1.ConditionStatus
	reason, message string
}

// finding returns the condition of an Extension after its bundles were written.
func (in Inputs) finding(result flow.Result) finding {
	for _, problems := range []map[flow.Key]string{result.Problems, result.Pending} {
		for _, key := range slices.SortedFunc(maps.Keys(problems), flow.Key.Compare) {
			return finding{corev1beta1.ConditionProgressing, reasonReconciling, fmt.Sprintf("ManagedResource %s: %s", key, problems[key])}
		}
	}
	switch {
	case in.Required && !wantsRuntime(in.Extension) && wantsRegistration(in.Extension):
		return finding{corev1beta1.ConditionFalse, reasonFailed, "The runtime cluster needs the extension, and " +
			"spec.deployment.extension.runtimeClusterValues is not set: set it, to {} if the chart needs no values."}
	case !in.Reconciled && (wantsRegistration(in.Extension) || hasAdmission(in)):
		return finding{corev1beta1.ConditionProgressing, reasonReconciling, "The Garden was not reconciled yet: the extension is registered afterwards."}
	case len(result.Written) > 0:
		return finding{corev1beta1.ConditionProgressing, reasonReconciling, "The resource-managers have not observed the current revision yet."}
	}
	var found []resourcesv1alpha1.ManagedResource
	for _, bundle := range result.Plan.Bundles {
		if mr := result.Live.ManagedResources[bundle.Key]; mr != nil {
			found = append(found, *mr)
		}
	}
	if problem := readiness.CheckAll(found); problem != nil {
		return finding{corev1beta1.ConditionProgressing, reasonReconciling, problem.Message}
	}
	return finding{corev1beta1.ConditionTrue, reasonSuccessful, "The extension is installed."}
}

func hasAdmission(in Inputs) bool {
	runtime, virtual := admissionCharts(in.Extension)
	return runtime != nil || virtual != nil
}

// removing returns the condition of an Extension that is being removed.
func (in Inputs) removing(result flow.Result) finding {
	if in.Required {
		return finding{corev1beta1.ConditionTrue, reasonInRuntime, "The extension stays in the runtime cluster as long as that needs it."}
	}
	var names []string
	for key := range result.Live.ManagedResources {
		names = append(names, key.Name)
	}
	slices.Sort(names)
	return finding{corev1beta1.ConditionFalse, reasonDeleting, "The extension is being removed: " + strings.Join(names, ", ") + "."}
}

// textOf returns the message of an error without data of Secrets, and identical for the same cause.
func textOf(in *Inputs, err error) string {
	return conditiontext.ForCondition(in.Resources.Redact(conditiontext.Stable(err.Error())))
}
