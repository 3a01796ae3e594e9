package unitcheck

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
)

func TestConclude(t *testing.T) {
	now := time.Unix(1e9, 0)
	running := host.UnitState{Load: "loaded", Active: "active", Sub: "running", Enabled: "enabled", Type: "simple", Since: now.Add(-time.Hour)}
	with := func(change func(*host.UnitState)) host.UnitState {
		state := running
		change(&state)
		return state
	}
	own := extensionsv1alpha1.Unit{Content: ptr.To("[Service]\n")}
	foreign := extensionsv1alpha1.Unit{FilePaths: []string{"/etc/a"}}
	off := extensionsv1alpha1.Unit{Content: ptr.To("[Service]\n"), Enable: ptr.To(false)}
	stopped := extensionsv1alpha1.Unit{Content: ptr.To("[Service]\n"), Command: ptr.To(extensionsv1alpha1.CommandStop)}
	dead := func(s *host.UnitState) { s.Active, s.Sub = "inactive", "dead" }
	for name, test := range map[string]struct {
		unit           extensionsv1alpha1.Unit
		state          host.UnitState
		reason, needle string
	}{
		"runs":              {own, running, reasonHealthy, ""},
		"failed":            {own, with(func(s *host.UnitState) { s.Active = "failed" }), reasonUnhealthy, "a.service failed"},
		"not there":         {own, with(func(s *host.UnitState) { s.Load = "not-found" }), reasonUnhealthy, "is not-found"},
		"masked":            {foreign, with(func(s *host.UnitState) { s.Load = "masked" }), reasonUnhealthy, "is masked"},
		"not enabled":       {own, with(func(s *host.UnitState) { s.Enabled = "disabled" }), reasonUnhealthy, "must be enabled"},
		"static":            {own, with(func(s *host.UnitState) { s.Enabled = "static" }), reasonHealthy, ""},
		"enabled":           {off, with(dead), reasonUnhealthy, "must be disabled"},
		"off":               {off, with(func(s *host.UnitState) { dead(s); s.Enabled = "disabled" }), reasonHealthy, ""},
		"runs but is off":   {off, with(func(s *host.UnitState) { s.Enabled = "disabled" }), reasonUnhealthy, "runs and must not"},
		"stopped":           {stopped, with(func(s *host.UnitState) { dead(s); s.Enabled = "static" }), reasonHealthy, ""},
		"does not run":      {own, with(dead), reasonUnhealthy, "does not run"},
		"ran once":          {own, with(func(s *host.UnitState) { dead(s); s.Type = "oneshot" }), reasonHealthy, ""},
		"run by a timer":    {own, with(func(s *host.UnitState) { dead(s); s.TriggeredBy = true }), reasonHealthy, ""},
		"of the system":     {foreign, with(func(s *host.UnitState) { dead(s); s.Enabled = "disabled" }), reasonHealthy, ""},
		"starts":            {own, with(func(s *host.UnitState) { s.Active, s.Since = "activating", now.Add(-time.Minute) }), reasonProgressing, "a.service"},
		"stuck":             {own, with(func(s *host.UnitState) { s.Active = "deactivating" }), reasonUnhealthy, "for more than 5m0s"},
		"starts repeatedly": {own, with(func(s *host.UnitState) { s.Active, s.Sub = "activating", "auto-restart" }), reasonProgressing, "a.service"},
	} {
		test.unit.Name = "a.service"
		got := conclude([]extensionsv1alpha1.Unit{test.unit}, []host.UnitState{test.state}, now, 5*time.Minute)
		if got.Reason != test.reason || !strings.Contains(got.Message, test.needle) || (got.Status == corev1.ConditionTrue) != (test.reason == reasonHealthy) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestPatch(t *testing.T) {
	now := time.Unix(1e9, 0).UTC()
	condition := corev1.NodeCondition{Type: ConditionType, Status: corev1.ConditionFalse, Reason: reasonUnhealthy, Message: "a failed"}
	node := &corev1.Node{}
	if got, err := patch(node, condition, now); err != nil || !strings.Contains(string(got), `"lastTransitionTime":"2001-09-09T01:46:40Z"`) {
		t.Errorf("got %s: %v", got, err)
	}
	present := condition
	present.LastTransitionTime = metav1.NewTime(now.Add(-time.Hour))
	node.Status.Conditions = []corev1.NodeCondition{present}
	if got, err := patch(node, condition, now); err != nil || got != nil {
		t.Errorf("the same condition is written again: %s: %v", got, err)
	}
	condition.Message = "b failed"
	if got, err := patch(node, condition, now); err != nil || !strings.Contains(string(got), `"lastTransitionTime":"2001-09-09T00:46:40Z"`) {
		t.Errorf("got %s: %v", got, err)
	}
}
