package console

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Age returns the time that has passed since when, in the format of kubectl. It is empty if when is zero.
func Age(when, now time.Time) string {
	if when.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(when), 0))
}
