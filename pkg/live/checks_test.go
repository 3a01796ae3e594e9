package live

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health"
)

// TestAdoptedChecks checks that AdoptedChecks returns the first generation with the current checks, whichever caller
// adopted them.
func TestAdoptedChecks(t *testing.T) {
	const origin = "garden/shop"
	check := func(expression string) []resourcesv1alpha1.HealthCheck {
		return []resourcesv1alpha1.HealthCheck{{Kind: "ConfigMap", Healthy: expression}}
	}
	view := NewView(Options{Examiner: health.NewExaminer("", nil)})
	for _, step := range []struct {
		name       string
		uid        types.UID
		generation int64
		checks     []resourcesv1alpha1.HealthCheck
		since      int64
		fails      bool
	}{
		{"no checks", "1", 1, nil, 0, false},
		{"the first ones", "1", 3, check("true"), 3, false},
		{"the same ones", "1", 4, check("true"), 3, false},
		{"others", "1", 5, check("false"), 5, false},
		{"from a cache that is behind", "1", 4, check("true"), 5, false},
		{"unusable ones", "1", 6, check("nobody"), 6, true},
		{"from a cache that is behind by one", "1", 5, check("false"), 6, true},
		{"none any more", "1", 7, nil, 7, false},
		{"none in the next generation either", "1", 8, nil, 7, false},
		{"those of a successor of the same name", "2", 1, check("true"), 1, false},
	} {
		view.AdoptChecks(t.Context(), Checks{Origin: origin, UID: step.uid, Generation: step.generation, Written: step.checks})
		since, err := view.AdoptedChecks(origin)
		if since != step.since || (err != nil) != step.fails {
			t.Errorf("%s: since generation %d (%v), want %d", step.name, since, err, step.since)
		}
	}
	view.ForgetChecks(origin)
	if since, err := view.AdoptedChecks(origin); since != 0 || err != nil || len(view.checks.byOrigin) != 0 {
		t.Errorf("after ForgetChecks: since generation %d (%v)", since, err)
	}
	blind := NewView(Options{})
	blind.AdoptChecks(t.Context(), Checks{Origin: origin, Generation: 1, Written: check("true")})
	blind.ForgetChecks(origin)
}
