package live

import (
	"testing"
	"time"
)

func TestPatience(t *testing.T) {
	p := newPatience()
	want := func(what string, limit time.Duration) {
		t.Helper()
		if got := p.limit(); got != limit {
			t.Errorf("%s: %s, want %s", what, got, limit)
		}
	}
	want("at first", leastPatience)
	p.learn(10*time.Millisecond, true)
	want("after a short one", leastPatience)
	p.learn(80*time.Millisecond, true)
	want("after one that took longer", 320*time.Millisecond)
	p.learn(300*time.Millisecond, true)
	want("after a long one", mostPatience)
	p.learn(mostPatience, false)
	want("after one that took too long", mostPatience*3/4)
	for range 10 {
		p.learn(mostPatience, false)
	}
	want("where all take long", leastPatience)
}
