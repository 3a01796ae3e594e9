package v1beta1

import (
	"testing"
	"time"
)

// TestKeepTimes checks that an unchanged condition keeps its times, so that nothing is written at rest.
func TestKeepTimes(t *testing.T) {
	now := time.Unix(1000, 0)
	before := KeepTimes(nil, Condition{Type: "A", Status: "True", Reason: "R", Message: "m"}, now)
	later := now.Add(time.Hour)
	if same := KeepTimes(&before, Condition{Type: "A", Status: "True", Reason: "R", Message: "m"}, later); !same.LastUpdateTime.Equal(&before.LastUpdateTime) {
		t.Error("the time of an unchanged condition changed")
	}
	other := KeepTimes(&before, Condition{Type: "A", Status: "True", Reason: "R", Message: "n"}, later)
	if !other.LastTransitionTime.Equal(&before.LastTransitionTime) || !other.LastUpdateTime.Time.Equal(later) {
		t.Errorf("%+v", other)
	}
}
