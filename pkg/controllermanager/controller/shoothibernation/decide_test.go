package shoothibernation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const (
	deadline = 2 * time.Hour
	nothing  = ""
	off      = "off"
	on       = "on"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// shootWith returns a Shoot that executes its schedules without a delay. Schedules are "start|end|location".
func shootWith(t *testing.T, executed string, schedules ...string) *corev1beta1.Shoot {
	t.Helper()
	shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Hibernation: &corev1beta1.Hibernation{}}}
	for i := 0; shoot.UID == "" || delay(shoot) != 0; i++ {
		shoot.UID = types.UID(fmt.Sprint(i))
	}
	shoot.CreationTimestamp = metav1.NewTime(at(t, "2020-01-01T00:00:00Z"))
	shoot.Generation, shoot.Status.ObservedGeneration = 2, 2
	shoot.Status.LastHibernationTriggerTime = ptr.To(metav1.NewTime(at(t, executed)))
	for _, text := range schedules {
		parts := strings.Split(text, "|")
		var schedule corev1beta1.HibernationSchedule
		for i, field := range []**string{&schedule.Start, &schedule.End, &schedule.Location} {
			if parts[i] != "" {
				*field = &parts[i]
			}
		}
		shoot.Spec.Hibernation.Schedules = append(shoot.Spec.Hibernation.Schedules, schedule)
	}
	return shoot
}

func wanted(decision Decision) string {
	switch {
	case decision.Hibernated == nil:
		return nothing
	case *decision.Hibernated:
		return off
	}
	return on
}

func TestDecide(t *testing.T) {
	const nights, berlin, newYork = "0 20 * * *|0 8 * * *|", "30 2 * * *||Europe/Berlin", "|30 1 * * *|America/New_York"
	for name, test := range map[string]struct {
		executed, now, want, next string
		schedules                 []string
		change                    func(*corev1beta1.Shoot)
	}{
		"before the start":     {"2026-01-05T08:00:00Z", "2026-01-05T19:59:59Z", nothing, "2026-01-05T20:00:00Z", []string{nights}, nil},
		"at the start":         {"2026-01-05T08:00:00Z", "2026-01-05T20:00:00Z", off, "2026-01-06T08:00:00Z", []string{nights}, nil},
		"after the start":      {"2026-01-05T20:00:00Z", "2026-01-05T20:00:01Z", nothing, "2026-01-06T08:00:00Z", []string{nights}, nil},
		"at the end":           {"2026-01-05T20:00:00Z", "2026-01-06T08:00:00Z", on, "2026-01-06T20:00:00Z", []string{nights}, nil},
		"missed within":        {"2026-01-05T08:00:00Z", "2026-01-05T21:59:59Z", off, "2026-01-06T08:00:00Z", []string{nights}, nil},
		"missed by too much":   {"2026-01-05T08:00:00Z", "2026-01-05T22:00:00Z", nothing, "2026-01-06T08:00:00Z", []string{nights}, nil},
		"the last of two":      {"2026-01-05T08:00:00Z", "2026-01-05T20:59:00Z", on, "2026-01-06T20:00:00Z", []string{"0 20 * * *||", "|30 20 * * *|"}, nil},
		"the last, other list": {"2026-01-05T08:00:00Z", "2026-01-05T20:59:00Z", on, "2026-01-06T20:00:00Z", []string{"|30 20 * * *|", "0 20 * * *||"}, nil},
		"both at once":         {"2026-01-05T08:00:00Z", "2026-01-05T20:00:00Z", on, "2026-01-06T20:00:00Z", []string{"|0 20 * * *|", "0 20 * * *||"}, nil},
		"weekdays":             {"2026-01-09T08:00:00Z", "2026-01-10T20:30:00Z", nothing, "2026-01-12T20:00:00Z", []string{"0 20 * * 1-5||"}, nil},
		"never":                {"2026-01-09T08:00:00Z", "2026-01-10T20:30:00Z", nothing, "", []string{"0 20 30 2 *||"}, nil},
		"new cluster": {"2026-01-05T08:00:00Z", "2026-01-05T20:30:00Z", nothing, "2026-01-06T08:00:00Z", []string{nights}, func(s *corev1beta1.Shoot) {
			s.Status.LastHibernationTriggerTime, s.CreationTimestamp = nil, metav1.NewTime(at(t, "2026-01-05T20:10:00Z"))
		}},
		"failed": {"2026-01-05T08:00:00Z", "2026-01-05T20:00:00Z", nothing, "", []string{nights}, func(s *corev1beta1.Shoot) {
			s.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateFailed}
		}},
		"failed before a change": {"2026-01-05T08:00:00Z", "2026-01-05T20:00:00Z", off, "2026-01-06T08:00:00Z", []string{nights}, func(s *corev1beta1.Shoot) {
			s.Status.LastOperation, s.Generation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateFailed}, 3
		}},
		"being deleted": {"2026-01-05T08:00:00Z", "2026-01-05T20:00:00Z", nothing, "", []string{nights}, func(s *corev1beta1.Shoot) {
			s.DeletionTimestamp = ptr.To(metav1.Now())
		}},
		// Berlin: on 2026-03-29 the hour from 2:00 is left out, on 2026-10-25 that from 2:00 occurs twice.
		"winter":                      {"2026-01-05T00:00:00Z", "2026-01-05T01:30:00Z", off, "2026-01-06T01:30:00Z", []string{berlin}, nil},
		"summer":                      {"2026-07-05T00:00:00Z", "2026-07-05T00:30:00Z", off, "2026-07-06T00:30:00Z", []string{berlin}, nil},
		"before the omitted hour":     {"2026-03-28T01:30:00Z", "2026-03-29T00:59:59Z", nothing, "2026-03-29T01:00:00Z", []string{berlin}, nil},
		"omitted hour":                {"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", off, "2026-03-30T00:30:00Z", []string{berlin}, nil},
		"repeated hour, first":        {"2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", off, "2026-10-26T01:30:00Z", []string{berlin}, nil},
		"repeated hour, second":       {"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", nothing, "2026-10-26T01:30:00Z", []string{berlin}, nil},
		"New York, winter":            {"2026-01-05T05:00:00Z", "2026-01-05T06:30:00Z", on, "2026-01-06T06:30:00Z", []string{newYork}, nil},
		"New York, repeated, first":   {"2026-10-31T05:30:00Z", "2026-11-01T05:30:00Z", on, "2026-11-02T06:30:00Z", []string{newYork}, nil},
		"New York, repeated, second":  {"2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", nothing, "2026-11-02T06:30:00Z", []string{newYork}, nil},
		"half hours":                  {"2026-01-05T00:00:00Z", "2026-01-05T14:30:00Z", off, "2026-01-06T14:30:00Z", []string{"0 20 * * *||Asia/Kolkata"}, nil},
		"a change of half an hour":    {"2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z", off, "2026-10-04T15:00:00Z", []string{"0 2 * * *||Australia/Lord_Howe"}, nil},
		"two time zones":              {"2026-01-05T00:00:00Z", "2026-01-05T19:30:00Z", off, "2026-01-06T01:00:00Z", []string{"0 20 * * *||Europe/Berlin", "|0 20 * * *|America/New_York"}, nil},
		"no schedules, but a setting": {"2026-01-05T00:00:00Z", "2026-01-05T19:30:00Z", nothing, "", nil, func(s *corev1beta1.Shoot) { s.Spec.Hibernation.Enabled = ptr.To(true) }},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := shootWith(t, test.executed, test.schedules...)
			if test.change != nil {
				test.change(shoot)
			}
			now := at(t, test.now)
			decision, err := Decide(shoot, deadline, now)
			if err != nil {
				t.Fatal(err)
			}
			if got := wanted(decision); got != test.want || got != nothing && !decision.Executed.Equal(now) {
				t.Errorf("got %q, executed until %s, want %q", got, decision.Executed, test.want)
			}
			next := nothing
			if !decision.Next.IsZero() {
				next = decision.Next.UTC().Format(time.RFC3339)
			}
			if next != test.next {
				t.Errorf("decides next at %s, want %s", next, test.next)
			}
		})
	}
}

// TestYear executes schedules for a year in three time zones, and expects each day exactly one hibernation and one wake-up,
// at the right local time.
func TestYear(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		shoot := shootWith(t, "2026-01-01T12:00:00Z", "15 2 * * *|45 9 * * *|"+zone)
		now, end := at(t, "2026-01-01T12:00:00Z").In(location), at(t, "2027-01-01T12:00:00Z")
		count := map[string]int{}
		for now.Before(end) {
			decision, err := Decide(shoot, deadline, now)
			if err != nil {
				t.Fatal(err)
			}
			if got := wanted(decision); got != nothing {
				count[got+now.Format(" 15:04")]++
				shoot.Status.LastHibernationTriggerTime = ptr.To(metav1.NewTime(decision.Executed))
			}
			if !decision.Next.After(now) {
				t.Fatalf("%s: at %s it decides next at %s", zone, now, decision.Next)
			}
			now = decision.Next.In(location)
		}
		// In the night in which the clocks are put forward, the start is in the gap.
		gap := map[string]string{"Europe/Berlin": "off 03:00", "America/New_York": "off 03:00", "Australia/Lord_Howe": "off 02:30"}[zone]
		if len(count) != 3 || count["on 09:45"] != 365 || count["off 02:15"] != 364 || count[gap] != 1 {
			t.Errorf("%s: %v", zone, count)
		}
	}
}

// TestByHand checks that a schedule is executed once, and does not revert later changes by hand.
func TestByHand(t *testing.T) {
	shoot := shootWith(t, "2026-01-05T08:00:00Z", "0 20 * * *||")
	decision, _ := Decide(shoot, deadline, at(t, "2026-01-05T20:00:00Z"))
	shoot.Status.LastHibernationTriggerTime = ptr.To(metav1.NewTime(decision.Executed))
	shoot.Spec.Hibernation.Enabled = ptr.To(false)
	if decision, _ := Decide(shoot, deadline, at(t, "2026-01-05T20:30:00Z")); decision.Hibernated != nil {
		t.Error("the schedule is executed again")
	}
}

// TestDelays checks that equal schedules are executed within ten minutes, not together, and each exactly once.
func TestDelays(t *testing.T) {
	start := at(t, "2026-01-05T20:00:00Z")
	times := map[time.Time]int{}
	for i := range 1000 {
		shoot := shootWith(t, "2026-01-05T19:00:00Z", "0 20 * * *||")
		shoot.UID = types.UID(fmt.Sprintf("%d-%d", i, i*i))
		first, _ := Decide(shoot, deadline, start.Add(-time.Second))
		if first.Hibernated != nil || first.Next.Before(start) || !first.Next.Before(start.Add(spread)) {
			t.Fatalf("executed at %s", first.Next)
		}
		times[first.Next]++
		second, _ := Decide(shoot, deadline, first.Next)
		shoot.Status.LastHibernationTriggerTime = ptr.To(metav1.NewTime(second.Executed))
		third, _ := Decide(shoot, deadline, first.Next.Add(time.Second))
		if wanted(second) != off || third.Hibernated != nil {
			t.Fatalf("at its time %q, and a second later %q", wanted(second), wanted(third))
		}
	}
	for at, count := range times {
		if count > 12 {
			t.Errorf("%d of 1000 Shoots are switched off at %s", count, at)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"every day||":          "schedules[0].start",
		"|0 25 * * *|":         "schedules[0].end",
		"@every 1h||":          "five fields",
		"TZ=UTC||":             "five fields",
		"0 20 * * *||Atlantis": "schedules[0].location",
	} {
		shoot := shootWith(t, "2026-01-05T08:00:00Z", text, "0 20 * * *||")
		decision, err := Decide(shoot, deadline, at(t, "2026-01-05T20:00:00Z"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
		if wanted(decision) != off {
			t.Errorf("%s: the other schedule is not executed", text)
		}
	}
}
