package requeue

import (
	"testing"
	"time"
)

func TestAt(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		next time.Time
		want time.Duration
	}{
		"never":  {time.Time{}, 0},
		"past":   {now.Add(-time.Minute), time.Millisecond},
		"now":    {now, time.Millisecond},
		"future": {now.Add(time.Minute), time.Minute},
	} {
		if got := At(test.next, now).RequeueAfter; got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestEarlier(t *testing.T) {
	never, first, second := time.Time{}, time.Unix(1, 0), time.Unix(2, 0)
	for _, test := range []struct{ a, b, want time.Time }{
		{never, never, never}, {never, first, first}, {first, never, first}, {first, second, first}, {second, first, first},
	} {
		if got := Earlier(test.a, test.b); !got.Equal(test.want) {
			t.Errorf("%s and %s: got %s, want %s", test.a, test.b, got, test.want)
		}
	}
}

func TestWake(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		collect func(*Wake)
		want    time.Duration
	}{
		"never":       {func(w *Wake) { w.At(time.Time{}); w.In(0) }, 0},
		"the sooner":  {func(w *Wake) { w.In(time.Minute); w.At(now.Add(time.Second)); w.In(time.Hour) }, time.Second},
		"never later": {func(w *Wake) { w.In(time.Minute); w.At(time.Time{}) }, time.Minute},
		"past":        {func(w *Wake) { w.In(time.Minute); w.At(now.Add(-time.Minute)) }, time.Millisecond},
	} {
		wake := Wake{Now: now}
		test.collect(&wake)
		if got := wake.Result().RequeueAfter; got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}
