package shoothibernation

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// zoneChange is longer than the change of any time zone's offset.
const zoneChange = 4 * time.Hour

// schedule is a cron expression in a time zone. It occurs once for each matching local time: in the night in which a local
// hour occurs twice, at the first of both, and in the night in which it is left out, at the end of the gap. The library alone
// would skip the latter: a cluster would stay switched off for a day.
type schedule struct {
	// times matches local times, expressed as times in UTC.
	times    cron.Schedule
	location *time.Location
}

// parse parses a cron expression with five fields, such as "0 20 * * 1-5".
func parse(expression string, location *time.Location) (schedule, error) {
	// The library accepts more: intervals have no times of their own, and its prefix for a time zone can make it panic.
	if strings.HasPrefix(expression, "@every") || strings.Contains(expression, "TZ=") {
		return schedule{}, fmt.Errorf("%q is not a cron expression with five fields, such as 0 20 * * *", expression)
	}
	times, err := cron.ParseStandard(expression)
	if err != nil {
		return schedule{}, fmt.Errorf("%q is not a cron expression with five fields, such as 0 20 * * *: %w", expression, err)
	}
	return schedule{times, location}, nil
}

// next returns the first time of the schedule after another one, or the zero time if there is none within five years.
func (s schedule) next(after time.Time) time.Time {
	local := s.local(after).Add(-zoneChange)
	for {
		if local = s.times.Next(local); local.IsZero() {
			return local
		}
		if at := s.instant(local); at.After(after) {
			return at
		}
	}
}

// latest returns the last time of the schedule after from and until to, or the zero time if there is none.
func (s schedule) latest(from, to time.Time) (found time.Time) {
	for at := s.next(from); !at.IsZero() && !at.After(to); at = s.next(at) {
		found = at
	}
	return found
}

// local returns what the clocks in the location show, as a time in UTC.
func (s schedule) local(t time.Time) time.Time {
	_, offset := t.In(s.location).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// instant returns when the clocks in the location show a local time first. In a gap, it is the end of the gap. Later local
// times never have earlier instants.
func (s schedule) instant(local time.Time) time.Time {
	at := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), 0, s.location)
	start, end := at.ZoneBounds()
	switch shown := s.local(at); {
	case shown.Before(local):
		return end
	case shown.After(local):
		return start
	}
	if start.IsZero() {
		return at
	}
	_, before := start.Add(-time.Second).Zone()
	_, now := at.Zone()
	if first := at.Add(-time.Duration(before-now) * time.Second); first.Before(start) && s.local(first).Equal(local) {
		return first
	}
	return at
}
