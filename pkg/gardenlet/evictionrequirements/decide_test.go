package evictionrequirements

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

func annotated(restriction, window string) map[string]string {
	return map[string]string{
		constants.AnnotationEvictionRequirementsDownscaleRestriction: restriction, constants.AnnotationShootMaintenanceWindow: window,
	}
}

func TestDecide(t *testing.T) {
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for name, test := range map[string]struct {
		restriction, window, now, next string
		restricted                     bool
	}{
		"never":                     {"never", "", "2026-01-02T03:00:00Z", "", true},
		"before the window":         {"in-maintenance-window-only", "220000+0000,230000+0000", "2026-01-02T21:59:59Z", "2026-01-02T22:00:00Z", true},
		"in the window":             {"in-maintenance-window-only", "220000+0000,230000+0000", "2026-01-02T22:00:00Z", "2026-01-02T22:55:00Z", false},
		"its last minutes":          {"in-maintenance-window-only", "220000+0000,230000+0000", "2026-01-02T22:55:00Z", "2026-01-03T22:00:00Z", true},
		"another zone":              {"in-maintenance-window-only", "220000+0100,230000+0100", "2026-01-02T21:30:00Z", "2026-01-02T21:55:00Z", false},
		"over midnight, before it":  {"in-maintenance-window-only", "233000+0000,003000+0000", "2026-01-02T23:40:00Z", "2026-01-03T00:25:00Z", false},
		"over midnight, after it":   {"in-maintenance-window-only", "233000+0000,003000+0000", "2026-01-03T00:10:00Z", "2026-01-03T00:25:00Z", false},
		"over midnight, outside":    {"in-maintenance-window-only", "233000+0000,003000+0000", "2026-01-03T12:00:00Z", "2026-01-03T23:30:00Z", true},
		"the end is just midnight":  {"in-maintenance-window-only", "230000+0000,000000+0000", "2026-01-02T23:30:00Z", "2026-01-02T23:55:00Z", false},
		"the end is after midnight": {"in-maintenance-window-only", "230000+0000,000200+0000", "2026-01-02T23:30:00Z", "2026-01-02T23:57:00Z", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, next, err := decide(annotated(test.restriction, test.window), at(test.now))
			if err != nil || (len(got) > 0) != test.restricted {
				t.Errorf("got %v and %v, want restricted: %t", got, err, test.restricted)
			}
			if test.next == "" && !next.IsZero() || test.next != "" && !next.Equal(at(test.next)) {
				t.Errorf("next %s, want %s", next, test.next)
			}
		})
	}
}

func TestDecideErrors(t *testing.T) {
	for name, test := range map[string]struct{ restriction, window, want string }{
		"no restriction":  {"", "", `is "", must be never or in-maintenance-window-only`},
		"no window":       {"in-maintenance-window-only", "", "is not a maintenance window such as"},
		"half a window":   {"in-maintenance-window-only", "220000+0100", "is not a maintenance window such as"},
		"not a time":      {"in-maintenance-window-only", "250000+0100,230000+0100", "hour out of range"},
		"without a zone":  {"in-maintenance-window-only", "220000,230000", "is not a maintenance window such as"},
		"another setting": {"always", "", `is "always"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := decide(annotated(test.restriction, test.window), time.Now()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestReduce(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"updatePolicy": map[string]any{
		"evictionRequirements": []any{map[string]any{"resources": []any{"cpu", "memory"}, "changeRequirement": "TargetHigherThanRequests"}},
	}}}}
	kept, ok := reduce(object).(*autoscaler)
	if !ok || len(kept.requirements) != 1 || kept.requirements[0].ChangeRequirement != upscalingOnly[0].ChangeRequirement ||
		len(kept.requirements[0].Resources) != 2 {
		t.Errorf("got %+v", kept)
	}
}
