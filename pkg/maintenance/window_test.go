package maintenance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func parseTime(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestState(t *testing.T) {
	for name, test := range map[string]struct {
		window     string
		now        string
		open       bool
		next, from string
	}{
		"before":                   {"220000+0000,230000+0000", "2026-01-02T21:59:59Z", false, "2026-01-02T22:00:00Z", "2026-01-02T22:00:00Z"},
		"its begin":                {"220000+0000,230000+0000", "2026-01-02T22:00:00Z", true, "2026-01-02T23:00:00Z", "2026-01-03T22:00:00Z"},
		"its end":                  {"220000+0000,230000+0000", "2026-01-02T23:00:00Z", false, "2026-01-03T22:00:00Z", "2026-01-03T22:00:00Z"},
		"another offset":           {"220000+0100,230000+0100", "2026-01-02T21:30:00Z", true, "2026-01-02T22:00:00Z", "2026-01-03T21:00:00Z"},
		"two offsets":              {"220000-0700,083000+0200", "2026-01-02T06:00:00Z", true, "2026-01-02T06:30:00Z", "2026-01-03T05:00:00Z"},
		"time in another zone":     {"220000+0000,230000+0000", "2026-01-02T23:30:00+01:00", true, "2026-01-02T23:00:00Z", "2026-01-03T22:00:00Z"},
		"begin on the day before":  {"003000+0530,013000+0530", "2026-01-02T19:00:00Z", true, "2026-01-02T20:00:00Z", "2026-01-03T19:00:00Z"},
		"midnight, before it":      {"233000+0000,003000+0000", "2026-01-02T23:40:00Z", true, "2026-01-03T00:30:00Z", "2026-01-03T23:30:00Z"},
		"midnight, after it":       {"233000+0000,003000+0000", "2026-01-03T00:10:00Z", true, "2026-01-03T00:30:00Z", "2026-01-03T23:30:00Z"},
		"midnight, outside":        {"233000+0000,003000+0000", "2026-01-03T12:00:00Z", false, "2026-01-03T23:30:00Z", "2026-01-03T23:30:00Z"},
		"until midnight":           {"230000+0000,000000+0000", "2026-01-02T23:30:00Z", true, "2026-01-03T00:00:00Z", "2026-01-03T23:00:00Z"},
		"the last day of February": {"233000+0000,003000+0000", "2028-02-29T23:40:00Z", true, "2028-03-01T00:30:00Z", "2028-03-01T23:30:00Z"},
		"the whole day":            {"120000+0000,120000+0000", "2026-01-02T18:00:00Z", true, "2026-01-03T12:00:00Z", "2026-01-03T12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			window, err := ParseAnnotation(test.window)
			if err != nil {
				t.Fatal(err)
			}
			now := parseTime(t, test.now)
			open, next := window.State(now)
			if open != test.open || window.Contains(now) != test.open || !next.Equal(parseTime(t, test.next)) {
				t.Errorf("open: %t until %s, want %t until %s", open, next.UTC(), test.open, test.next)
			}
			if from := window.Next(now); !from.Equal(parseTime(t, test.from)) {
				t.Errorf("opens next at %s, want %s", from.UTC(), test.from)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "is not a maintenance window such as",
		"220000+0100":              "is not a maintenance window such as",
		"220000,230000":            "begin of the maintenance window",
		"250000+0100,230000+0100":  "hour out of range",
		"220000+0100, 230000+0100": "end of the maintenance window",
		"220000+0100,236000+0100":  "minute out of range",
	} {
		if _, err := ParseAnnotation(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestOfShoot(t *testing.T) {
	shoot := &corev1beta1.Shoot{}
	if window, found := OfShoot(shoot); found || window.Length() != day || !window.Contains(time.Now()) {
		t.Errorf("a Shoot without a window has %+v, %t", window, found)
	}
	shoot.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "nine", End: "ten"}}
	if window, found := OfShoot(shoot); found || window.Length() != day {
		t.Errorf("a window that cannot be parsed is %+v, %t", window, found)
	}
	shoot.Spec.Maintenance.TimeWindow = &corev1beta1.MaintenanceTimeWindow{Begin: "233000+0000", End: "010000+0000"}
	if window, found := OfShoot(shoot); !found || window.Length() != 90*time.Minute {
		t.Errorf("got %+v, %t", window, found)
	}
}

func TestEndingEarlier(t *testing.T) {
	window, err := Parse("233000+0000", "000500+0000")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := window.EndingEarlier(15*time.Minute), (Window{window.begin, 20 * time.Minute}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	never := window.EndingEarlier(time.Hour)
	for minute := range 24 * 60 {
		if at := time.Unix(int64(minute*60), 0); never.Contains(at) {
			t.Fatalf("a window that is shorter than what begins in it is open at %s", at.UTC())
		}
	}
}

// TestFrom checks that times are in the window, spread over all of it, the same each time, and equal to the schedule.
func TestFrom(t *testing.T) {
	for _, text := range []string{"220000+0000,230000+0000", "233000+0000,003000+0000", "051500+0530,111500+0530", "120000+0000,120000+0000"} {
		window, err := ParseAnnotation(text)
		if err != nil {
			t.Fatal(err)
		}
		midnight, begins := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), map[time.Duration]bool{}
		for i := range 20000 {
			uid := types.UID(fmt.Sprint("uid-", i))
			from := window.From(uid)
			begin := from.Next(midnight)
			_, end := from.State(begin)
			if _, closes := window.State(begin); !window.Contains(begin) || !end.Equal(closes) || from != window.From(uid) {
				t.Fatalf("%s: from %s to %s", text, begin, end)
			}
			if got, want := from.Schedule(), fmt.Sprintf("%d %d * * *", begin.Minute(), begin.Hour()); got != want {
				t.Fatalf("%s: %s begins with the schedule %s, want %s", text, begin, got, want)
			}
			begins[from.begin] = true
		}
		if len(begins) != int(window.Length()/time.Minute) {
			t.Errorf("%s: %d different begins, want each of the %d minutes", text, len(begins), window.Length()/time.Minute)
		}
	}
}

func TestSpreadOverLessThanAMinute(t *testing.T) {
	if got := Spread("uid", time.Second); got != 0 {
		t.Errorf("got %s", got)
	}
}
