package fieldowner

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestForceApply checks that fields of other managers are taken over only if they are in conflict, once, and that remaining
// differences are reported.
func TestForceApply(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	ours := entry(resourcesv1alpha1.FieldManager, metav1.ManagedFieldsOperationApply, `{"f:data":{"f:a":{}}}`)
	theirs := entry("kubectl", metav1.ManagedFieldsOperationUpdate, `{"f:data":{"f:b":{}}}`)
	ofOthers := entry("kubectl", metav1.ManagedFieldsOperationUpdate, `{"f:metadata":{"f:labels":{"f:x":{}}}}`)
	refused := errors.New("refused")
	for _, c := range []struct {
		name            string
		entries         []metav1.ManagedFieldsEntry
		mendedAfter     int // the number of the apply after which the object is as desired, or 0 for never
		applyErr        error
		patchErr        error
		applied         int
		patched         bool
		asDesired, fail bool
	}{
		{name: "as desired at once", entries: []metav1.ManagedFieldsEntry{ours}, mendedAfter: 1, applied: 1, asDesired: true},
		{name: "after others lose them", entries: []metav1.ManagedFieldsEntry{ours, theirs}, mendedAfter: 2, applied: 2, patched: true, asDesired: true},
		{name: "never", entries: []metav1.ManagedFieldsEntry{ours, theirs}, applied: 2, patched: true},
		{name: "nobody else owns anything that matters", entries: []metav1.ManagedFieldsEntry{ours, ofOthers}, applied: 1},
		{name: "refused", applyErr: refused, applied: 1, fail: true},
		{name: "the patch is refused", entries: []metav1.ManagedFieldsEntry{ours, theirs}, patchErr: refused, applied: 1, patched: true, fail: true},
	} {
		applied, patched := 0, false
		_, asDesired, err := ForceApply[*corev1.ConfigMap]{
			Apply: func() (*corev1.ConfigMap, error) {
				applied++
				return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", ManagedFields: c.entries}}, c.applyErr
			},
			Patch: func(_ *corev1.ConfigMap, patch []byte) error {
				patched = true
				if !strings.Contains(string(patch), `"7"`) || strings.Contains(string(patch), "kubectl") {
					t.Errorf("%s: the patch is %s", c.name, patch)
				}
				return c.patchErr
			},
			AsDesired: func(*corev1.ConfigMap) bool { return applied == c.mendedAfter },
			Keep:      []Pattern{{"metadata", "labels"}},
		}.Run()
		if applied != c.applied || patched != c.patched || asDesired != c.asDesired || errors.Is(err, refused) != c.fail || (err != nil) != c.fail {
			t.Errorf("%s: %d applies, patched: %t, as desired: %t, error %v", c.name, applied, patched, asDesired, err)
		}
	}
}
