package bundles

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func TestResultOf(t *testing.T) {
	report := func(state corev1beta1.LastOperationState, errs ...corev1beta1.LastError) flow.Report {
		return flow.Report{LastOperation: corev1beta1.LastOperation{State: state, Progress: 40, Description: "network"}, LastErrors: errs}
	}
	result, err := resultOf(report(corev1beta1.LastOperationStateSucceeded), now.Add(time.Minute), now)
	if err != nil || result != (extension.Result{Again: time.Minute}) {
		t.Errorf("succeeded: %+v, %v", result, err)
	}
	result, err = resultOf(report(corev1beta1.LastOperationStateProcessing), time.Time{}, now)
	if err != nil || result != (extension.Result{Waiting: "not finished: network", Progress: 40}) {
		t.Errorf("processing: %+v, %v", result, err)
	}
	_, err = resultOf(report(corev1beta1.LastOperationStateError,
		corev1beta1.LastError{TaskID: ptr.To("network"), Description: "Refused", Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraUnauthorized}},
		corev1beta1.LastError{TaskID: ptr.To("driver"), Description: "Not healthy"},
	), time.Time{}, now)
	if err == nil || err.Error() != "network: Refused; driver: Not healthy" || !slices.Equal(extension.Codes(err), []corev1beta1.ErrorCode{corev1beta1.ErrorInfraUnauthorized}) {
		t.Errorf("failed: %v, %v", err, extension.Codes(err))
	}
	// The shoot's resource-manager has an invalid token. The infrastructure is not the cause.
	_, err = resultOf(report(corev1beta1.LastOperationStateError,
		corev1beta1.LastError{TaskID: ptr.To("network"), Description: "Unauthorized"}), time.Time{}, now)
	if codes := extension.Codes(err); err == nil || len(codes) > 0 {
		t.Errorf("locked out: %v, %v", err, codes)
	}
}

// TestDeletionOf checks that only problems that block the deletion are errors.
func TestDeletionOf(t *testing.T) {
	bundle := func(name string, deleting bool, reason string) (flow.Key, *resourcesv1alpha1.ManagedResource) {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
		if deleting {
			mr.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		}
		mr.Status.Conditions = []resourcesv1alpha1.Condition{{Type: resourcesv1alpha1.ResourcesApplied, Status: resourcesv1alpha1.ConditionFalse, Reason: reason, Message: "Forbidden."}}
		return flow.Key{Namespace: "a", Name: name}, mr
	}
	for name, test := range map[string]struct {
		deleting bool
		reason   string
		failed   bool
	}{
		"not yet": {false, resourcesv1alpha1.ReasonApplyFailed, false}, "goes": {true, resourcesv1alpha1.ReasonDeletionPending, false},
		"is refused": {true, resourcesv1alpha1.ReasonDeletionFailed, true},
	} {
		t.Run(name, func(t *testing.T) {
			key, mr := bundle("network", test.deleting, test.reason)
			emitted := flow.Result{Live: flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}}}
			result, err := deletionOf(emitted)
			if (err != nil) != test.failed || !test.failed && !strings.HasSuffix(result.Waiting, ": network") {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}

func TestClasses(t *testing.T) {
	seed, shoot := Seed("a", "b"), Shoot("a", "b")
	if isOfShoot(&resourcesv1alpha1.ManagedResource{Spec: seed.Spec}) || !isOfShoot(&resourcesv1alpha1.ManagedResource{Spec: shoot.Spec}) {
		t.Error("a bundle is deployed to the wrong cluster")
	}
	if shoot.Spec.InjectLabels["shoot.gardener.cloud/no-cleanup"] != "true" {
		t.Errorf("the labels are %v", shoot.Spec.InjectLabels)
	}
}
