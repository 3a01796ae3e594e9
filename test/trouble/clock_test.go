package trouble

import (
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// skewed is a clock with an offset.
type skewed struct {
	clock.RealClock
	by time.Duration
}

func (s skewed) Now() time.Time { return s.RealClock.Now().Add(s.by) }

func (s skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// movable is a clock that a test can move forward.
type movable struct {
	clock.RealClock
	by *atomic.Int64
}

func (m movable) Now() time.Time { return m.RealClock.Now().Add(time.Duration(m.by.Load())) }

func (m movable) Since(t time.Time) time.Duration { return m.Now().Sub(t) }

// TestClockSkew makes the clock of the resource-manager differ from that of the API server by an hour.
func TestClockSkew(t *testing.T) {
	for name, by := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.startManager(func(r *inprocess.ResourceManager) { r.Clock = skewed{by: by} })
			w.declare("set", configMap("one", "1"), service("two", 1), configMap("leaves", "1"))
			w.declare("goes", configMap("goes", "1"))
			w.eventuallyHolds("at first")
			before := w.uid(service("two", 1))
			w.declare("set", configMap("one", "2"), service("two", 2))
			w.undeclare("goes")
			w.patch(configMap("one", ""), `{"data":{"key":"by hand"}}`)
			w.delete(configMap("one", ""))
			w.eventuallyHolds("in the end")
			if after := w.uid(service("two", 2)); after != before {
				t.Errorf("the UID is %s, was %s", after, before)
			}
		})
	}
}
