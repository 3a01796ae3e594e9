package kit

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Patience is how long is waited for what has to happen. It is long: a machine may be slow, and only failures cost it.
	Patience = 2 * time.Minute
	// interval is how often what is waited for is looked at, at first. What takes long is looked at less often, at the latest after longestInterval: a look
	// costs the programs CPU time that are waited for.
	interval        = 50 * time.Millisecond
	longestInterval = 200 * time.Millisecond
	// steadyLooks is how many looks in a row have to see the same.
	steadyLooks = 10
)

// Must ends the test if there is an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// TextOf returns what an error says, nothing if there is none.
func TextOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Eventually looks until there is nothing to object to. The test ends with the last objection after Patience, or when its context
// ends.
func Eventually(tb testing.TB, reason string, objection func() string) {
	tb.Helper()
	EventuallyWithin(tb, Patience, reason, objection)
}

// EventuallyWithin is Eventually for what takes longer.
func EventuallyWithin(tb testing.TB, patience time.Duration, reason string, objection func() string) {
	tb.Helper()
	began := time.Now()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		last := objection()
		if last == "" {
			return
		}
		select {
		case <-deadline.C:
			tb.Fatalf("not within %s: %s; seen last: %s", patience, reason, last)
		case <-tb.Context().Done():
			tb.Fatalf("%s: %v; seen last: %s", reason, tb.Context().Err(), last)
		case <-time.After(min(max(time.Since(began)/20, interval), longestInterval)):
		}
	}
}

// EventuallyTrue is Eventually for a look that has no words for what it sees.
func EventuallyTrue(tb testing.TB, reason string, holds func() bool) {
	tb.Helper()
	Eventually(tb, reason, func() string {
		if holds() {
			return ""
		}
		return "it is not so yet"
	})
}

// Steady returns a function that reports whether a number has stayed the same for a time, and for some looks: a machine may be slow.
func Steady(rest time.Duration) func(number int) bool {
	last, looks, since := -1, 0, time.Now()
	return func(number int) bool {
		if number != last {
			last, looks, since = number, 0, time.Now()
		}
		looks++
		return looks > steadyLooks && time.Since(since) >= rest
	}
}

// Change reads an object, changes it and writes it, again and again while others write it in between.
func Change(tb testing.TB, c client.Client, object client.Object, change func(), options ...client.UpdateOption) {
	tb.Helper()
	Must(tb, retry.RetryOnConflict(wait.Backoff{Steps: 100, Duration: interval}, func() error {
		if err := c.Get(tb.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change()
		return c.Update(tb.Context(), object, options...)
	}))
}
