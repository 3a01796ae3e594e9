package criticalcomponents

import (
	"testing"
	"time"
)

func TestEvents_AreHandledOnce(t *testing.T) {
	a, b, c := Missing{DaemonSets: []string{"a"}}, Missing{DaemonSets: []string{"b"}}, Missing{Pods: []string{"c"}}
	const pause = 10 * time.Second
	start := time.Unix(1_000_000, 0)
	m := &memories{}
	for i, step := range []struct {
		after   time.Duration
		missing Missing
		want    bool
	}{
		{0, a, true},                        // the first
		{time.Second, a, false},             // the same
		{2 * time.Second, b, false},         // another one of the reason, too soon
		{3 * time.Second, c, true},          // another reason
		{4 * time.Second, a, false},         // back again
		{pause, b, true},                    // after the pause
		{25 * time.Minute, b, false},        // the same
		{30*time.Minute + pause, b, true},   // the same after half an hour
		{30*time.Minute + 2*pause, a, true}, // another one
		{30*time.Minute + 2*pause, a, false},
	} {
		if got := m.waits("n", "1", step.missing, start.Add(step.after), pause); got != step.want {
			t.Errorf("step %d: told is %t", i, got)
		}
	}
	if !m.waits("n", "2", a, start, pause) || !m.waits("o", "3", a, start, pause) || m.count() != 2 {
		t.Error("another node of the same name, and one of another name, have memories of their own")
	}
	if since, waited := m.forget("n"); !waited || !since.Equal(start) || m.count() != 1 {
		t.Errorf("the node waited since %s: %t", since, waited)
	}
	if _, waited := m.forget("n"); waited {
		t.Error("it still waits")
	}
}

func TestMemory_RecordsWaitingSince(t *testing.T) {
	m := &memories{}
	start := time.Unix(1_000_000, 0)
	m.waits("n", "1", Missing{Pods: []string{"a"}}, start, time.Second)
	m.waits("n", "1", Missing{Pods: []string{"b"}}, start.Add(time.Minute), time.Second)
	if m.waits("n", "1", Missing{Pods: []string{"a"}}, start.Add(time.Minute), time.Second) {
		t.Error("it was told a moment ago")
	}
	m.forgetReason("n", ReasonUnready)
	m.forgetReason("another", ReasonUnready)
	if !m.waits("n", "1", Missing{Pods: []string{"a"}}, start.Add(time.Minute), time.Second) {
		t.Error("it was not told")
	}
	if since, _ := m.forget("n"); !since.Equal(start) {
		t.Errorf("since %s", since)
	}
}
