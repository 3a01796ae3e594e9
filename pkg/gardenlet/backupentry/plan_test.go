package backupentry

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func given(change ...func(*inputs)) inputs {
	in := inputs{
		owner: flow.Owner{Flow: FlowName, UID: "1", Namespace: "garden-a", Name: "entry"}, namespace: "garden", seed: "here", now: now,
		entry:  &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: "entry", Annotations: map[string]string{}}},
		bucket: &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket"}, Spec: corev1beta1.BackupBucketSpec{Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "r"}}},
		config: &gardenletv1alpha1.BackupEntryController{},
	}
	in.entry.Spec.SeedName, in.entry.Spec.BucketName = ptr.To("here"), "bucket"
	for _, each := range change {
		each(&in)
	}
	return in
}

func deleted(ago time.Duration) func(*inputs) {
	return func(in *inputs) { in.entry.DeletionTimestamp = ptr.To(metav1.NewTime(now.Add(-ago))) }
}

func grace(hours int, purposes ...corev1beta1.ShootPurpose) func(*inputs) {
	return func(in *inputs) {
		in.config = &gardenletv1alpha1.BackupEntryController{DeletionGracePeriodHours: &hours, DeletionGracePeriodShootPurposes: purposes}
	}
}

func annotated(key, value string) func(*inputs) {
	return func(in *inputs) { in.entry.Annotations[key] = value }
}

func seeds(wanted string, present *string) func(*inputs) {
	return func(in *inputs) { in.entry.Spec.SeedName, in.entry.Status.SeedName = ptr.To(wanted), present }
}

func migrated(in *inputs) {
	in.entry.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeMigrate, State: corev1beta1.LastOperationStateSucceeded}
}

func TestPhase(t *testing.T) {
	for name, test := range map[string]struct {
		in   inputs
		want phase
	}{
		"new":                            {given(), phaseReconcile},
		"of another Seed":                {given(seeds("other", nil)), phaseNone},
		"moves away":                     {given(seeds("other", ptr.To("here"))), phaseMigrate},
		"moves here":                     {given(seeds("here", ptr.To("other"))), phaseNone},
		"moved, not asked for":           {given(migrated), phaseNone},
		"moved":                          {given(migrated, annotated(constants.AnnotationGardenerOperation, constants.OperationRestore)), phaseRestore},
		"deleted":                        {given(deleted(0)), phaseDelete},
		"kept for a time":                {given(deleted(time.Hour), grace(2)), phaseWait},
		"kept long enough":               {given(deleted(2*time.Hour), grace(2)), phaseDelete},
		"of a purpose that is kept":      {given(deleted(0), grace(2, "production"), annotated(annotationPurpose, "production")), phaseWait},
		"of a purpose that is not":       {given(deleted(0), grace(2, "production"), annotated(annotationPurpose, "testing")), phaseDelete},
		"without a purpose":              {given(deleted(0), grace(2, "production")), phaseWait},
		"forced":                         {given(deleted(0), grace(2), annotated(constants.AnnotationBackupEntryForceDeletion, "true")), phaseDelete},
		"force that is no truth":         {given(deleted(0), grace(2), annotated(constants.AnnotationBackupEntryForceDeletion, "please")), phaseWait},
		"deleted while it moves away":    {given(deleted(0), seeds("other", ptr.To("here"))), phaseMigrate},
		"deleted, and of another Seed":   {given(deleted(0), seeds("other", nil)), phaseNone},
		"restored where it has not been": {given(annotated(constants.AnnotationGardenerOperation, constants.OperationRestore)), phaseRestore},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.in.phase(); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	bundle := func(key flow.Key, object *extensionsv1alpha1.BackupEntry, operation string, asked backup.Asked) flow.Bundle {
		return flow.Bundle{Key: key, Choices: map[string]string{"operation": operation, "secret": object.Spec.SecretRef.Name, "at": asked.At.String()}}
	}
	finished := &backup.Extension{Annotations: map[string]string{constants.AnnotationGardenerTimestamp: now.Format(time.RFC3339Nano)}}
	finished.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeMigrate, State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.NewTime(now),
	}
	away := seeds("other", ptr.To("here"))
	for name, test := range map[string]struct {
		in        inputs
		exists    bool
		operation string
		gone      bool
	}{
		"new":         {given(), false, constants.OperationReconcile, false},
		"moves away":  {given(away), true, constants.OperationMigrate, false},
		"moved away":  {given(away, func(in *inputs) { in.live, in.asked = finished, backup.Asked{At: now} }), true, "", true},
		"moved again": {given(away), false, "", true},
		"deleted":     {given(deleted(0)), true, "", true},
		"kept":        {given(deleted(0), grace(1)), true, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			plan, _, err := test.in.plan(test.exists, bundle)
			if err != nil {
				t.Fatal(err)
			}
			if gone := len(plan.Tombstones) == 1 && plan.Tombstones[0].Confirm; gone != test.gone {
				t.Errorf("deletes %t, want %t", gone, test.gone)
			}
			operation := ""
			if len(plan.Bundles) == 1 {
				operation = plan.Bundles[0].Choices["operation"]
			}
			if operation != test.operation {
				t.Errorf("operation %q, want %q", operation, test.operation)
			}
		})
	}
}

// TestRestoreWithState checks that the object is created with the saved state and the operation wait-for-state. When that is
// applied, the restoration is requested. It remains requested even if the observed state is older than the remembered request.
func TestRestoreWithState(t *testing.T) {
	bundle := func(key flow.Key, object *extensionsv1alpha1.BackupEntry, operation string, _ backup.Asked) flow.Bundle {
		return flow.Bundle{Key: key, Objects: []client.Object{object}, Choices: map[string]string{"operation": operation}}
	}
	in := given(annotated(constants.AnnotationGardenerOperation, constants.OperationRestore))
	in.saved = &corev1beta1.ExtensionResourceState{Kind: "BackupEntry", Name: ptr.To("entry"), State: &runtime.RawExtension{Raw: []byte(`{"a":"b"}`)}}
	for _, step := range []struct {
		applied, state bool
		operation      string
	}{
		{false, true, constants.OperationWaitForState}, {false, true, constants.OperationWaitForState}, {true, false, constants.OperationRestore},
		{false, false, constants.OperationRestore},
	} {
		in.stateApplied = step.applied
		plan, asked, err := in.plan(true, bundle)
		if err != nil {
			t.Fatal(err)
		}
		in.asked = asked
		planned := plan.Bundles[0]
		if got := planned.Choices["operation"]; got != step.operation {
			t.Errorf("the operation is %q, want %q", got, step.operation)
		}
		object, _ := planned.Objects[0].(*extensionsv1alpha1.BackupEntry)
		if got := object.Status.State != nil; got != step.state || (len(planned.Spec.StatusOnCreation) == 1) != step.state {
			t.Errorf("%s: the status is %+v, initially %v", step.operation, object.Status, planned.Spec.StatusOnCreation)
		}
	}
}

func TestSavedFor(t *testing.T) {
	state := &corev1beta1.ShootState{Spec: corev1beta1.ShootStateSpec{Extensions: []corev1beta1.ExtensionResourceState{
		{Kind: "Worker", Name: ptr.To("entry"), State: &runtime.RawExtension{Raw: []byte("1")}},
		{Kind: "BackupEntry", Name: ptr.To("other"), State: &runtime.RawExtension{Raw: []byte("2")}},
		{Kind: "BackupEntry", Name: ptr.To("entry"), State: &runtime.RawExtension{Raw: []byte("3")}},
	}}}
	if got := savedFor(given().entry, state); got == nil || string(got.State.Raw) != "3" {
		t.Errorf("the saved state is %+v", got)
	}
	state.Spec.Extensions[2].State = nil
	if got := savedFor(given().entry, state); got != nil {
		t.Errorf("without a state: got %+v", got)
	}
}
