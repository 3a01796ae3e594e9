package evictionrequirements

import (
	"fmt"
	"strings"
	"time"
)

// timeOfDay is the format of the two times in the annotation with a maintenance window, for example 220000+0100.
const timeOfDay = "150405-0700"

// lastMinutes is how long before its end a maintenance window counts as over. An operation that began later would end outside the window.
const lastMinutes = 5 * time.Minute

// window is a maintenance window, as times of day in UTC. It may include midnight.
type window struct{ begin, end time.Duration }

// parseWindow parses "<begin>,<end>" and subtracts lastMinutes from the end.
func parseWindow(text string) (window, error) {
	begin, end, found := strings.Cut(text, ",")
	if !found {
		return window{}, fmt.Errorf("%q is not a maintenance window such as 220000+0100,230000+0100", text)
	}
	var w window
	for _, part := range []struct {
		value string
		at    *time.Duration
	}{{begin, &w.begin}, {end, &w.end}} {
		parsed, err := time.Parse(timeOfDay, part.value)
		if err != nil {
			return window{}, fmt.Errorf("%q is not a maintenance window such as 220000+0100,230000+0100: %w", text, err)
		}
		*part.at = sinceMidnight(parsed)
	}
	w.end = (w.end - lastMinutes + day) % day
	return w, nil
}

const day = 24 * time.Hour

// sinceMidnight returns the time of day in UTC.
func sinceMidnight(t time.Time) time.Duration {
	t = t.UTC()
	return t.Sub(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC))
}

// at returns whether the window is open, and when it opens or closes next.
func (w window) at(now time.Time) (open bool, next time.Time) {
	of := sinceMidnight(now)
	untilBegin, untilEnd := until(of, w.begin), until(of, w.end)
	if open = untilEnd < untilBegin; open {
		return true, now.Add(untilEnd)
	}
	return false, now.Add(untilBegin)
}

// until returns the duration from one time of day to the next occurrence of another. It is positive and at most a day.
func until(from, to time.Duration) time.Duration {
	if to > from {
		return to - from
	}
	return to - from + day
}
