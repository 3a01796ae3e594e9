package backup

import (
	"fmt"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 30, 0, 0, time.UTC)
	schedule, err := cron.ParseStandard("0 22 * * *")
	if err != nil {
		t.Fatal(err)
	}
	settings := Settings{Full: schedule, Period: 5 * time.Minute, Limit: 100, Collection: 12 * time.Hour}
	idle := func(change func(*state)) state {
		s := state{
			lastFull: now.Add(-time.Hour), lastDelta: now.Add(-time.Minute), watching: true, collected: now,
			busy: map[action]bool{}, notBefore: map[action]time.Time{},
		}
		change(&s)
		return s
	}
	for name, test := range map[string]struct {
		state state
		want  string
		next  time.Duration
	}{
		"nothing is due":              {idle(func(*state) {}), "[]", 4 * time.Minute},
		"nothing changed":             {idle(func(s *state) { s.lastDelta = now.Add(-5 * time.Minute) }), "[confirm]", 12 * time.Hour},
		"changes":                     {idle(func(s *state) { s.size = 1 }), "[]", 4 * time.Minute},
		"changes are due":             {idle(func(s *state) { s.size, s.lastDelta = 1, now.Add(-5*time.Minute) }), "[seal]", 12 * time.Hour},
		"many changes":                {idle(func(s *state) { s.size = 100 }), "[seal]", 12 * time.Hour},
		"many changes, disk is full":  {idle(func(s *state) { s.size, s.notBefore[actionSeal] = 100, now.Add(time.Second) }), "[]", time.Second},
		"sealed":                      {idle(func(s *state) { s.sealed = true }), "[upload]", 12 * time.Hour},
		"sealed, being stored":        {idle(func(s *state) { s.sealed, s.busy[actionUpload] = true, true }), "[]", 12 * time.Hour},
		"sealed, store has failed":    {idle(func(s *state) { s.sealed, s.notBefore[actionUpload] = true, now.Add(time.Second) }), "[]", time.Second},
		"sealed, and many more":       {idle(func(s *state) { s.sealed, s.size = true, 399 }), "[upload]", 12 * time.Hour},
		"sealed, and too many more":   {idle(func(s *state) { s.sealed, s.size = true, 400 }), "[drop]", 12 * time.Hour},
		"gap":                         {idle(func(s *state) { s.gap, s.size, s.watching = true, -1, false }), "[full]", 12 * time.Hour},
		"gap, full has failed":        {idle(func(s *state) { s.gap, s.size, s.notBefore[actionFull] = true, -1, now.Add(time.Second) }), "[]", time.Second},
		"full is due":                 {idle(func(s *state) { s.lastFull = now.Add(-12 * time.Hour) }), "[full]", 4 * time.Minute},
		"full was missed":             {idle(func(s *state) { s.lastFull = now.Add(-72 * time.Hour) }), "[full]", 4 * time.Minute},
		"full is being taken":         {idle(func(s *state) { s.lastFull, s.busy[actionFull] = now.Add(-12*time.Hour), true }), "[]", 4 * time.Minute},
		"watch has ended":             {idle(func(s *state) { s.watching = false }), "[watch]", 4 * time.Minute},
		"garbage":                     {idle(func(s *state) { s.collected = now.Add(-12 * time.Hour) }), "[collect]", 4 * time.Minute},
		"garbage is being collected":  {idle(func(s *state) { s.collected, s.busy[actionCollect] = now.Add(-12*time.Hour), true }), "[]", 4 * time.Minute},
		"confirmation is in progress": {idle(func(s *state) { s.lastDelta, s.busy[actionConfirm] = now.Add(-time.Hour), true }), "[]", 12 * time.Hour},
	} {
		actions, next := decide(test.state, settings, now)
		if got := fmt.Sprint(actions); got != test.want || next.Sub(now) != test.next {
			t.Errorf("%s: %s, next in %s", name, got, next.Sub(now))
		}
	}
}
