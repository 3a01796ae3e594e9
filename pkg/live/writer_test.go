package live

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
)

// TestLastWriter names the manager that changed an object last, also if it wrote through a subresource.
func TestLastWriter(t *testing.T) {
	entry := func(manager, subresource, fields string, at int64) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Subresource: subresource, Time: &metav1.Time{Time: time.Unix(at, 0)}, FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const spec, status, both = `{"f:spec":{}}`, `{"f:status":{"f:phase":{}}}`, `{"f:metadata":{"f:annotations":{"f:a":{}}},"f:status":{}}`
	ours := entry("resource-manager", "", spec, 10)
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"nobody":                         {[]metav1.ManagedFieldsEntry{ours, entry(fieldowner.Preserver, "", spec, 20)}, ""},
		"the latest":                     {[]metav1.ManagedFieldsEntry{ours, entry("b", "", spec, 12), entry("a", "", spec, 11)}, "b"},
		"only the status":                {[]metav1.ManagedFieldsEntry{ours, entry("a", "status", status, 12)}, ""},
		"an annotation, with the status": {[]metav1.ManagedFieldsEntry{ours, entry("a", "status", both, 12)}, "a"},
		"an annotation, and an earlier edit": {
			[]metav1.ManagedFieldsEntry{ours, entry("a", "status", both, 12), entry("b", "", spec, 5)}, "a",
		},
		"an edit, then a status": {[]metav1.ManagedFieldsEntry{ours, entry("b", "", spec, 11), entry("a", "status", both, 12)}, "b"},
		"the scale":              {[]metav1.ManagedFieldsEntry{ours, entry("a", "scale", `{"f:spec":{"f:replicas":{}}}`, 12)}, "a"},
		"no times":               {[]metav1.ManagedFieldsEntry{{Manager: "a"}, ours}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastWriter(test.entries); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
