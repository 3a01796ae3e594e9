package kit

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// WaitTimeout is how long tests wait for a condition. It is long because machines may be slow, and it costs time only if a
	// test fails.
	WaitTimeout = 2 * time.Minute
	// interval is the initial polling interval. It grows up to longestInterval, because polling costs CPU time that the
	// tested programs need.
	interval        = 50 * time.Millisecond
	longestInterval = 200 * time.Millisecond
	// longWait is how long a wait takes that is worth a line in the log of a test. These lines show where a slow test spends its time.
	longWait = 5 * time.Second
	// steadyLooks is how many consecutive polls must return the same value.
	steadyLooks = 10
)

// Must ends the test if there is an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// TextOf returns the message of an error, or an empty string for nil.
func TextOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Eventually polls until objection returns an empty string. It fails the test with the last objection after WaitTimeout, or
// when the context of the test ends.
func Eventually(tb testing.TB, reason string, objection func() string) {
	tb.Helper()
	EventuallyWithin(tb, WaitTimeout, reason, objection)
}

// EventuallyWithin is like Eventually with a longer timeout.
func EventuallyWithin(tb testing.TB, timeout time.Duration, reason string, objection func() string) {
	tb.Helper()
	began := time.Now()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		last := objection()
		if last == "" {
			if waited := time.Since(began); waited > longWait {
				tb.Logf("waited %s: %s", waited.Round(time.Second), reason)
			}
			return
		}
		select {
		case <-deadline.C:
			tb.Fatalf("not within %s: %s; seen last: %s", timeout, reason, last)
		case <-tb.Context().Done():
			tb.Fatalf("%s: %v; seen last: %s", reason, tb.Context().Err(), last)
		case <-time.After(min(max(time.Since(began)/20, interval), longestInterval)):
		}
	}
}

// EventuallyTrue is like Eventually for conditions without a description.
func EventuallyTrue(tb testing.TB, reason string, holds func() bool) {
	tb.Helper()
	Eventually(tb, reason, func() string {
		if holds() {
			return ""
		}
		return "the condition is not true yet"
	})
}

// Steady returns a function that reports whether a number has not changed for a duration and for several polls, because a
// machine may be slow.
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

// Change reads an object, changes it and updates it. It retries on conflicts.
func Change(tb testing.TB, c client.Client, object client.Object, change func(), options ...client.UpdateOption) {
	tb.Helper()
	Must(tb, retry.RetryOnConflict(conflicts, func() error {
		if err := c.Get(tb.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change()
		return c.Update(tb.Context(), object, options...)
	}))
}

// WriteStatus writes the status of an object, also if a controller has changed the object since it was read.
func WriteStatus(tb testing.TB, c client.Client, object client.Object) {
	tb.Helper()
	Must(tb, retry.RetryOnConflict(conflicts, func() error {
		live, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("a copy of %T is not an object", object)
		}
		if err := c.Get(tb.Context(), client.ObjectKeyFromObject(object), live); err != nil {
			return err
		}
		object.SetResourceVersion(live.GetResourceVersion())
		return c.Status().Update(tb.Context(), object)
	}))
}

// conflicts is the number of attempts for an object that others also write.
var conflicts = wait.Backoff{Steps: 100, Duration: interval}
