// Package maintenance computes maintenance windows of Shoots: a time of the day with its offset from UTC, at which changes
// may disturb the users of a cluster.
package maintenance

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// timeFormat is the format of the begin and the end of a window, for example 220000+0100.
const timeFormat = "150405-0700"

const day = 24 * time.Hour

// Window recurs each day. The zero value is a window that is never open.
type Window struct {
	// begin is the time of the day in UTC, length the duration. The window may include midnight. A window of 24 hours is
	// always open.
	begin, length time.Duration
}

// ParseTime parses one end of a window, such as 220000+0100. The result is the duration since midnight in UTC.
func ParseTime(text string) (time.Duration, error) {
	parsed, err := time.Parse(timeFormat, text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of the day with its offset from UTC, such as 220000+0100: %w", text, err)
	}
	return timeOfDay(parsed), nil
}

// Parse returns the window between two times of the day, such as 220000+0100. If they are equal, it is the whole day.
func Parse(begin, end string) (Window, error) {
	from, err := ParseTime(begin)
	if err != nil {
		return Window{}, fmt.Errorf("the begin of the maintenance window: %w", err)
	}
	to, err := ParseTime(end)
	if err != nil {
		return Window{}, fmt.Errorf("the end of the maintenance window: %w", err)
	}
	return Window{from, until(from, to)}, nil
}

// ParseAnnotation parses a window in the form "<begin>,<end>", as in the annotation shoot.gardener.cloud/maintenance-window.
func ParseAnnotation(text string) (Window, error) {
	begin, end, found := strings.Cut(text, ",")
	if !found {
		return Window{}, fmt.Errorf("%q is not a maintenance window such as 220000+0100,230000+0100", text)
	}
	window, err := Parse(begin, end)
	if err != nil {
		return Window{}, fmt.Errorf("%q is not a maintenance window such as 220000+0100,230000+0100: %w", text, err)
	}
	return window, nil
}

// OfShoot returns the window of a Shoot. It is false, with a window of the whole day from midnight in UTC, if the Shoot has
// none, or one that validation would refuse.
func OfShoot(shoot *corev1beta1.Shoot) (Window, bool) {
	if maintenance := shoot.Spec.Maintenance; maintenance != nil && maintenance.TimeWindow != nil {
		if window, err := Parse(maintenance.TimeWindow.Begin, maintenance.TimeWindow.End); err == nil {
			return window, true
		}
	}
	return Window{length: day}, false
}

// Length returns how long the window is open, at most 24 hours.
func (w Window) Length() time.Duration { return w.length }

// Contains reports whether the window is open. It contains its begin, but not its end.
func (w Window) Contains(t time.Time) bool {
	open, _ := w.State(t)
	return open
}

// State returns whether the window is open at a time, and when it closes or opens next, which is always later.
func (w Window) State(t time.Time) (open bool, next time.Time) {
	since := (timeOfDay(t) - w.begin + day) % day
	if since < w.length {
		return true, t.Add(w.length - since)
	}
	return false, t.Add(day - since)
}

// Next returns when the window opens next after a time at which it may be open.
func (w Window) Next(t time.Time) time.Time { return t.Add(until(timeOfDay(t), w.begin)) }

// EndingEarlier returns a window that ends earlier, so that what begins in it ends in the original window. It is never open
// if the original window is not longer than that.
func (w Window) EndingEarlier(by time.Duration) Window {
	return Window{w.begin, max(0, w.length-by)}
}

// From returns the rest of the window from a time that depends only on the UID, in whole minutes after its begin. Objects
// with the same window thus begin at different times of it.
func (w Window) From(uid types.UID) Window {
	after := Spread(uid, w.length)
	return Window{(w.begin + after) % day, w.length - after}
}

// Schedule returns the begin of the window each day as a schedule in the form of cron, in UTC.
func (w Window) Schedule() string {
	return fmt.Sprintf("%d %d * * *", w.begin/time.Minute%60, w.begin/time.Hour)
}

// Spread returns a duration in whole minutes, less than the given one. It depends only on the UID: it is the same each
// time, and different for different objects.
func Spread(uid types.UID, over time.Duration) time.Duration {
	minutes := int64(over / time.Minute)
	if minutes < 1 {
		return 0
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid)) // never fails
	return time.Duration(int64(hash.Sum32())%minutes) * time.Minute
}

// timeOfDay returns the duration since midnight in UTC.
func timeOfDay(t time.Time) time.Duration {
	t = t.UTC()
	return t.Sub(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC))
}

// until returns the duration from one time of the day to the next occurrence of another: positive, and at most a day.
func until(from, to time.Duration) time.Duration { return (to-from+day-1)%day + 1 }
