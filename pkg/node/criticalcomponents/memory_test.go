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
		{2 * time.Second, b, false},         // other objects for the same reason, too soon
		{3 * time.Second, c, true},          // another reason
		{4 * time.Second, a, false},         // the first reason again
		{pause, b, true},                    // after the pause
		{25 * time.Minute, b, false},        // the same
		{30*time.Minute + pause, b, true},   // the same after half an hour
		{30*time.Minute + 2*pause, a, true}, // other objects
		{30*time.Minute + 2*pause, a, false},
	} {
		if got := m.waits("n", "1", step.missing, start.Add(step.after), pause); got != step.want {
			t.Errorf("step %d: waits returned %t", i, got)
		}
	}
	if !m.waits("n", "2", a, start, pause) || !m.waits("o", "3", a, start, pause) || m.count() != 2 {
		t.Error("a recreated node and another node must have separate memories")
	}
	if since, waited := m.forget("n"); !waited || !since.Equal(start) || m.count() != 1 {
		t.Errorf("the node waited since %s: %t", since, waited)
	}
	if _, waited := m.forget("n"); waited {
		t.Error("the node still waits")
	}
}

func TestMemory_RecordsWaitingSince(t *testing.T) {
	m := &memories{}
	start := time.Unix(1_000_000, 0)
	m.waits("n", "1", Missing{Pods: []string{"a"}}, start, time.Second)
	m.waits("n", "1", Missing{Pods: []string{"b"}}, start.Add(time.Minute), time.Second)
	if m.waits("n", "1", Missing{Pods: []string{"a"}}, start.Add(time.Minute), time.Second) {
		t.Error("it was reported a moment ago")
	}
	m.forgetReason("n", ReasonUnready)
	m.forgetReason("another", ReasonUnready)
	if !m.waits("n", "1", Missing{Pods: []string{"a"}}, start.Add(time.Minute), time.Second) {
		t.Error("it is not reported again")
	}
	if since, _ := m.forget("n"); !since.Equal(start) {
		t.Errorf("waiting since %s", since)
	}
}
