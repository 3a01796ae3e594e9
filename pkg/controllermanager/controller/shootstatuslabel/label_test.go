package shootstatuslabel

import (
	"testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func TestOf(t *testing.T) {
	status := func(operation corev1beta1.LastOperationType, state corev1beta1.LastOperationState, failed bool, conditions ...corev1beta1.ConditionStatus) corev1beta1.ShootStatus {
		status := corev1beta1.ShootStatus{}
		if operation != "" {
			status.LastOperation = &corev1beta1.LastOperation{Type: operation, State: state, Description: "something"}
		}
		if failed {
			status.LastErrors = []corev1beta1.LastError{{Description: "failed"}}
		}
		for _, each := range conditions {
			status.Conditions = append(status.Conditions, corev1beta1.Condition{Status: each})
		}
		return status
	}
	for name, test := range map[string]struct {
		status corev1beta1.ShootStatus
		want   string
	}{
		"nothing has begun":                {status("", "", false, "False"), "healthy"},
		"being created":                    {status("Create", "Processing", false, "False"), "healthy"},
		"being created, with errors":       {status("Create", "Processing", true, "True"), "unhealthy"},
		"creation failed":                  {status("Create", "Failed", true), "unhealthy"},
		"created":                          {status("Create", "Succeeded", false, "True", "True"), "healthy"},
		"being deleted":                    {status("Delete", "Processing", false, "False", "Unknown"), "healthy"},
		"being deleted, with errors":       {status("Delete", "Error", true, "True"), "unhealthy"},
		"all well":                         {status("Reconcile", "Succeeded", false, "True", "True"), "healthy"},
		"something progresses":             {status("Reconcile", "Succeeded", false, "True", "Progressing"), "progressing"},
		"something is not known":           {status("Reconcile", "Succeeded", false, "Progressing", "Unknown"), "unknown"},
		"something fails":                  {status("Reconcile", "Succeeded", false, "Unknown", "False", "Progressing"), "unhealthy"},
		"under way":                        {status("Reconcile", "Processing", false, "True"), "healthy"},
		"under way, with errors":           {status("Reconcile", "Processing", true, "True"), "unhealthy"},
		"an error":                         {status("Reconcile", "Error", false, "True"), "unhealthy"},
		"aborted":                          {status("Reconcile", "Aborted", false, "True"), "unhealthy"},
		"no conditions":                    {status("Reconcile", "Succeeded", false), "healthy"},
		"migrated, conditions still count": {status("Migrate", "Succeeded", false, "Unknown"), "unknown"},
	} {
		kept := corev1beta1.ShootStatus{}
		keep(&kept, test.status)
		for what, each := range map[string]corev1beta1.ShootStatus{"the status": test.status, "what the cache keeps": kept} {
			if got := Of(each); got != test.want {
				t.Errorf("%s, %s: %s, want %s", name, what, got, test.want)
			}
		}
	}
}
