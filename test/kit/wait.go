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
	// interval is how often what is waited for is looked at.
	interval = 50 * time.Millisecond
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
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
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
		case <-ticker.C:
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
