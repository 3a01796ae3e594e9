package installation

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestFindings checks the conditions of an extension that are derived from its ManagedResource.
func TestFindings(t *testing.T) {
	mr := func(observed int64, statuses ...resourcesv1alpha1.ConditionStatus) *resourcesv1alpha1.ManagedResource {
		m := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		m.Status.ObservedGeneration = observed
		for i, kind := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ResourcesProgressing} {
			if i < len(statuses) {
				m.Status.Conditions = append(m.Status.Conditions, resourcesv1alpha1.Condition{Type: kind, Status: statuses[i], Message: "says so"})
			}
		}
		return m
	}
	const yes, no, unknown = resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ConditionUnknown
	for name, test := range map[string]struct {
		mr   *resourcesv1alpha1.ManagedResource
		why  string
		want string
	}{
		"nothing":             {nil, "", "False InstallationPending, False ControllerNotHealthy, True ControllerNotRolledOut"},
		"refused":             {nil, "no", "False InstallationFailed, False ControllerNotHealthy, True ControllerNotRolledOut"},
		"ready":               {mr(2, yes, yes, no), "", "True InstallationSuccessful, True ControllerHealthy, False ControllerRolledOut"},
		"rolling out":         {mr(2, yes, yes, yes), "", "True InstallationSuccessful, True ControllerHealthy, True ControllerNotRolledOut"},
		"unhealthy":           {mr(2, yes, no, no), "", "True InstallationSuccessful, False ControllerNotHealthy, False ControllerRolledOut"},
		"not known":           {mr(2, yes, unknown, unknown), "", "True InstallationSuccessful, False ControllerNotHealthy, True ControllerNotRolledOut"},
		"not applied":         {mr(2, no), "", "False InstallationPending, False ControllerNotHealthy, True ControllerNotRolledOut"},
		"the revision is new": {mr(1, yes, yes, no), "", "False InstallationPending, False ControllerNotHealthy, True ControllerNotRolledOut"},
		"runs, and refused":   {mr(2, yes, yes, no), "no", "False InstallationFailed, True ControllerHealthy, False ControllerRolledOut"},
	} {
		var got []string
		for _, f := range findingsOf(test.mr, test.why) {
			got = append(got, string(f.status)+" "+f.reason)
			if f.message == "" {
				t.Errorf("%s: %s has no message", name, f.kind)
			}
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%s: got %s, want %s", name, text, test.want)
		}
	}
}

// TestNotEmitted checks that the condition names why a ManagedResource was refused, but not errors that end by themselves.
func TestNotEmitted(t *testing.T) {
	valid := finding{kind: corev1beta1.ControllerInstallationValid}
	resource := schema.GroupResource{Group: resourcesv1alpha1.GroupName, Resource: "managedresources"}
	for name, test := range map[string]struct {
		err      error
		reported bool
	}{
		"refused":     {apierrors.NewForbidden(resource, "example", errors.New("no")), true},
		"too large":   {errors.New("the manifests are too large"), true},
		"conflict":    {fmt.Errorf("apply: %w", apierrors.NewConflict(resource, "example", errors.New("changed"))), false},
		"overload":    {apierrors.NewTooManyRequests("later", 1), false},
		"no response": {fmt.Errorf("apply: %w", &url.Error{Op: "Patch", URL: "https://seed", Err: errors.New("refused")}), false},
	} {
		got := notEmitted(valid, test.err, "text")
		if reported := len(got) == 2 && got[1].reason == reasonFailed && got[1].message == "text"; reported != test.reported || got[0] != valid {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestUpdate checks that the times of a condition change together with the fields that they belong to.
func TestUpdate(t *testing.T) {
	first := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	say := func(before []corev1beta1.Condition, status corev1beta1.ConditionStatus, message string, after time.Duration) []corev1beta1.Condition {
		return update(before, []finding{{corev1beta1.ControllerInstallationValid, status, "Reason", message}}, first.Add(after))
	}
	conditions := say([]corev1beta1.Condition{{Type: "Other"}}, "True", "a", 0)
	if same := say(conditions, "True", "a", time.Hour); len(same) != 2 || !same[1].LastUpdateTime.Time.Equal(first) {
		t.Errorf("with the same content: %+v", same)
	}
	if text := say(conditions, "True", "b", time.Hour); !text[1].LastTransitionTime.Time.Equal(first) || text[1].LastUpdateTime.Time.Equal(first) {
		t.Errorf("with another message: %+v", text)
	}
	if status := say(conditions, "False", "a", time.Hour); status[1].LastTransitionTime.Time.Equal(first) {
		t.Errorf("with another status: %+v", status)
	}
	long := say(nil, "True", strings.Repeat("ü", maxMessage), 0)[0].Message
	if len(long) > maxMessage+len("…") || !utf8.ValidString(long) {
		t.Errorf("a long message has %d bytes", len(long))
	}
}

// TestProblemIsStable checks that the text in the condition is the same every time for the same cause, although each connection
// has another local port. Otherwise each attempt would cause a write.
func TestProblemIsStable(t *testing.T) {
	said := map[string]bool{}
	for _, port := range []string{"40001", "40002"} {
		err := fmt.Errorf("request the chart from the registry: read tcp 10.0.0.1:%s->10.0.0.2:443: connection reset by peer", port)
		said[textOf(nil, &invalid{reason: reasonPull, error: err, passes: true})] = true
	}
	if len(said) != 1 {
		t.Errorf("the same outage is reported as %v", said)
	}
}
