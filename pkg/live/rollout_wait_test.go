package live

import (
	"testing"
	"time"
)

func TestRolloutWait(t *testing.T) {
	p := newRolloutWait()
	want := func(what string, limit time.Duration) {
		t.Helper()
		if got := p.limit(); got != limit {
			t.Errorf("%s: %s, want %s", what, got, limit)
		}
	}
	want("at first", minRolloutWait)
	p.learn(10*time.Millisecond, true)
	want("after a short one", minRolloutWait)
	p.learn(80*time.Millisecond, true)
	want("after one that took longer", 320*time.Millisecond)
	p.learn(300*time.Millisecond, true)
	want("after a long one", maxRolloutWait)
	p.learn(maxRolloutWait, false)
	want("after one that took too long", maxRolloutWait*3/4)
	for range 10 {
		p.learn(maxRolloutWait, false)
	}
	want("if all rollouts take long", minRolloutWait)
}
