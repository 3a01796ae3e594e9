package breakglass

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

var start = time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)

// state returns an observation in which the Lease was renewed the given time ago.
func state(age time.Duration, ready int32, change func(*resourcesv1alpha1.ManagedResource)) observed {
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{flow.LabelFlow: "seed"}}}
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: "a-1"}}
	if change != nil {
		change(mr)
	}
	return observed{
		mr:         mr,
		lease:      &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(start.Add(-age)))}},
		deployment: &appsv1.Deployment{Status: appsv1.DeploymentStatus{ReadyReplicas: ready}},
	}
}

func TestDecide(t *testing.T) {
	const stale, never = 11 * time.Minute, -1
	absent := state(stale, 0, nil)
	absent.deployment, absent.lease = nil, nil
	unknown := state(stale, 0, nil)
	unknown.mr = nil
	deleting := func(keep bool) observed {
		return state(stale, 0, func(mr *resourcesv1alpha1.ManagedResource) {
			mr.DeletionTimestamp, mr.Spec.KeepObjects = ptr.To(metav1.NewTime(start)), &keep
		})
	}
	for name, test := range map[string]struct {
		seen observed
		last attempt
		why  bool
		next time.Duration
	}{
		"it lives":                     {state(time.Minute, 0, nil), attempt{}, false, 9 * time.Minute},
		"stale":                        {state(stale, 0, nil), attempt{}, true, 10 * time.Minute},
		"neither lease nor Deployment": {absent, attempt{}, true, 10 * time.Minute},
		"a replica is ready":           {state(stale, 1, nil), attempt{}, false, 10 * time.Minute},
		"no ManagedResource":           {unknown, attempt{}, false, never},
		"that of another flow":         {state(stale, 0, func(mr *resourcesv1alpha1.ManagedResource) { mr.Labels[flow.LabelFlow] = "garden" }), attempt{}, false, never},
		"suspended": {state(stale, 0, func(mr *resourcesv1alpha1.ManagedResource) {
			metav1.SetMetaDataAnnotation(&mr.ObjectMeta, resourcesv1alpha1.AnnotationIgnore, "true")
		}), attempt{}, false, never},
		"deleted with its objects":       {deleting(false), attempt{}, false, never},
		"deleted without its objects":    {deleting(true), attempt{}, true, 10 * time.Minute},
		"applied a moment ago":           {state(stale, 0, nil), attempt{"a-1", start.Add(time.Minute)}, false, time.Minute},
		"applied for long":               {state(stale, 0, nil), attempt{"a-1", start}, true, 10 * time.Minute},
		"another revision was applied":   {state(stale, 0, nil), attempt{"a-0", start.Add(time.Minute)}, true, 10 * time.Minute},
		"another revision, but it lives": {state(time.Minute, 0, nil), attempt{"a-0", start.Add(time.Minute)}, false, 9 * time.Minute},
	} {
		c := &Controller{options: Options{Flow: "seed", StaleAfter: 10 * time.Minute}, last: test.last}
		why, next := c.decide(test.seen, start.Add(-time.Hour), start)
		if (why != "") != test.why || next.IsZero() != (test.next == never) || test.next != never && !next.Equal(start.Add(test.next)) {
			t.Errorf("%s: %q, next after %s", name, why, next.Sub(start))
		}
	}
}

// TestInstalls checks that a flow that installs the resource-manager does not wait until its lease is stale, and that others do.
func TestInstalls(t *testing.T) {
	start := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{flow.LabelFlow: "garden"}}}
	for installs, want := range map[bool]string{false: "", true: "the resource-manager is not installed, and has no ready replica"} {
		c := &Controller{options: Options{Flow: "garden", StaleAfter: 10 * time.Minute, Installs: installs}}
		if why, _ := c.decide(observed{mr: mr}, start, start); why != want {
			t.Errorf("installs %t: %q", installs, why)
		}
	}
}

// TestWhatAnEventSays checks that an Event contains no content of a Secret and is not longer than the API allows.
func TestWhatAnEventSays(t *testing.T) {
	object := func(kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": kind, "apiVersion": "v1"}}
	}
	invalid := apierrors.NewBadRequest(`invalid value: "hunter2"`)
	for _, err := range []error{invalid, fmt.Errorf("it failed: %w", invalid), errors.New("hunter2")} {
		if got := withoutContent(object("Secret"), err); strings.Contains(got.Error(), "hunter2") {
			t.Error(got)
		}
		if got := withoutContent(object("ConfigMap"), err); !errors.Is(got, err) {
			t.Error(got)
		}
	}
	if got := withoutContent(object("Secret"), invalid).Error(); got != "BadRequest" {
		t.Error(got)
	}
	for _, length := range []int{0, 1024, 1025, 5000} {
		if got := shortened(strings.Repeat("ä", length)[:length]); len(got) > 1024 || length > 1024 && (!utf8.ValidString(got) || !strings.HasSuffix(got, "bytes)")) {
			t.Errorf("%d bytes were shortened to %d: %s", length, len(got), got)
		}
	}
}
