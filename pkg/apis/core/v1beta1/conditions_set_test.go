package v1beta1

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestKeepTime(t *testing.T) {
	first, later := time.Unix(1000, 0), time.Unix(2000, 0)
	before := &LastOperation{Type: LastOperationTypeCreate, Progress: 10, LastUpdateTime: metav1.NewTime(first)}
	same, changed := *before, *before
	same.LastUpdateTime, changed.Progress = metav1.NewTime(later), 20
	for name, test := range map[string]struct {
		before *LastOperation
		next   LastOperation
		want   time.Time
	}{
		"new":       {nil, same, later},
		"unchanged": {before, same, first},
		"changed":   {before, changed, later},
	} {
		if got := KeepTime(test.before, test.next, later); !got.LastUpdateTime.Time.Equal(test.want) || got.Progress != test.next.Progress {
			t.Errorf("%s: got %+v, want the time %s", name, got, test.want)
		}
	}
}
