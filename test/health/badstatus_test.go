package health

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// TestBadStatus writes unexpected statuses like a faulty controller. Each object gets all of them one after the other, and then a good
// status, which shows whether anything stopped working.
func TestBadStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(r *inprocess.ResourceManager) { r.OtherKinds = "FullStatus" })
	bad := []string{
		`{"conditions": "none"}`,
		`{"conditions": {"type": "Ready"}}`,
		`{"conditions": ["Ready", 1, null]}`,
		`{"conditions": [{"status": "False"}]}`,
		`{"conditions": [{"type": 5, "status": true}]}`,
		`{"conditions": [{"type": "Ready", "status": "False", "message": ["a"]}]}`,
		`{"conditions": [], "observedGeneration": "one", "availableReplicas": "many", "updatedReplicas": 1.5, "state": 7}`,
		`{"observedGeneration": -5, "availableReplicas": -1, "updatedReplicas": -9223372036854775808}`,
		`{"observedGeneration": 99999999999999999999, "phase": {}, "state": ["Ready"]}`,
	}
	good := map[schema.GroupVersionKind]string{
		prometheus: `{"availableReplicas": 1, "updatedReplicas": 1, "conditions": [
			{"type": "Available", "status": "True", "observedGeneration": 9}, {"type": "Reconciled", "status": "True", "observedGeneration": 9}]}`,
		certificate: `{"state": "Ready", "observedGeneration": 9}`,
		issuer:      `{"state": "Ready", "observedGeneration": 9}`,
		autoscaler:  `{"conditions": [{"type": "ConfigUnsupported", "status": "False"}]}`,
		widget:      `{"conditions": [{"type": "Ready", "status": "True"}]}`,
	}
	for gvk, status := range good {
		t.Run(gvk.Kind, func(t *testing.T) {
			t.Parallel()
			f := f.in(t)
			h := f.follow(managed)
			f.manage(managed, custom(gvk, "app", ""))
			f.setWholeStatus(gvk, status)
			f.eventuallySays(managed, isHealthy, isRolledOut)
			for i, text := range bad {
				f.setWholeStatus(gvk, text)
				f.eventuallyShown(gvk)
				t.Logf("%s\n    is %s", text, f.verdictOf(gvk))
				if verdict := f.verdictOf(gvk); strings.Contains(verdict, "panic") {
					t.Errorf("bad status %d: %s", i, verdict)
				}
			}
			f.setWholeStatus(gvk, status)
			f.eventuallySays(managed, isHealthy, isRolledOut)
			t.Logf("the history:\n%s", h)
		})
	}
	t.Run("lasting", func(t *testing.T) {
		t.Parallel()
		f := f.in(t)
		f.manage(managed, custom(prometheus, "app", ""))
		f.setWholeStatus(prometheus, bad[0])
		f.eventuallySays(managed, unhealthy("HealthCheckError", "the field status.conditions has to be of type"), want{status: "Unknown"})
	})
}

// eventuallyShown waits until the live view has the current state of the object.
func (f *fixture) eventuallyShown(gvk schema.GroupVersionKind) {
	f.Helper()
	f.eventually("the live view shows the object", func() string {
		if shown, present := f.stateOf(gvk, "app").Observation.ResourceVersion, f.get(gvk, "app").GetResourceVersion(); shown != present {
			return fmt.Sprintf("the live view shows version %s, want %s", shown, present)
		}
		return ""
	})
}

func (f *fixture) verdictOf(gvk schema.GroupVersionKind) string {
	f.Helper()
	if verdict := f.stateOf(gvk, "app").Observation.Health; verdict != nil {
		return fmt.Sprintf("%+v", *verdict)
	}
	return "healthy"
}
