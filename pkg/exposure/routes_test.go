package exposure

import (
	"testing"
	"time"
)

// TestRoutes checks that a route stays open until DNS records point to the next one and their time to live has passed.
func TestRoutes(t *testing.T) {
	start := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for name, steps := range map[string][]struct {
		wanted  string
		settled bool
		after   time.Duration
		want    string
	}{
		"the first one": {{"a", false, 0, "a"}, {"a", true, time.Hour, "a"}},
		"none":          {{"", true, 0, ""}},
		"changes": {
			{"a", true, 0, "a"}, {"b", true, time.Minute, "b,a 2026-11-27T12:11:00Z"}, {"b", true, 2 * time.Minute, "b,a 2026-11-27T12:11:00Z"},
			{"b", true, 11 * time.Minute, "b"},
		},
		"records change late": {
			{"a", true, 0, "a"}, {"b", false, 0, "b,a 2026-11-27T12:10:00Z"}, {"b", false, 4 * time.Minute, "b,a 2026-11-27T12:10:00Z"},
			{"b", false, 6 * time.Minute, "b,a 2026-11-27T12:16:00Z"}, {"b", false, time.Hour, "b,a 2026-11-27T13:10:00Z"},
			{"b", true, 65 * time.Minute, "b,a 2026-11-27T13:10:00Z"}, {"b", true, 70 * time.Minute, "b"},
		},
		"and back": {{"a", true, 0, "a"}, {"b", true, 0, "b,a 2026-11-27T12:10:00Z"}, {"a", true, time.Minute, "a,b 2026-11-27T12:11:00Z"}},
		"several": {
			{"b", true, 0, "b"}, {"c", true, 0, "c,b 2026-11-27T12:10:00Z"}, {"a", true, time.Minute, "a,b 2026-11-27T12:10:00Z,c 2026-11-27T12:11:00Z"},
			{"a", true, 10 * time.Minute, "a,c 2026-11-27T12:11:00Z"},
		},
		"not exposed any more": {{"a", true, 0, "a"}, {"", true, 0, ",a 2026-11-27T12:10:00Z"}, {"", true, time.Hour, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := ""
			for i, step := range steps {
				routes, err := ParseRoutes(recorded)
				if err != nil {
					t.Fatal(err)
				}
				next := routes.Next(step.wanted, step.settled, start.Add(step.after))
				if recorded = next.String(); recorded != step.want {
					t.Fatalf("step %d: got %q, want %q", i, recorded, step.want)
				}
				if step.wanted != "" && !next.Has(step.wanted) || next.Has("never") {
					t.Errorf("step %d: wrong routes are open: %q", i, recorded)
				}
			}
		})
	}
	if routes, err := ParseRoutes("a,b soon"); err == nil {
		t.Errorf("read %v", routes)
	}
	two := Routes{Leaving: []Leaving{{"a", start.Add(time.Hour)}, {"b", start}}}
	if got := two.Ends(); !got.Equal(start) || !(Routes{}).Ends().IsZero() {
		t.Errorf("the next route ends at %s", got)
	}
}
