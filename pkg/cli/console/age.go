package console

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Age returns how long ago something was, as kubectl writes it; nothing if that is not known.
func Age(when, now time.Time) string {
	if when.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(when), 0))
}
