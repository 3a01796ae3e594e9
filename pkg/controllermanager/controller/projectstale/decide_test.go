package projectstale

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

var (
	created = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	usual   = Periods{MinimumLifetime: 30 * day, Grace: 14 * day, Expiration: 90 * day, Sync: 12 * time.Hour}
)

func after(days int) *metav1.Time { return &metav1.Time{Time: created.Add(time.Duration(days) * day)} }

// days describes a time as days after the creation.
func days(at *metav1.Time) string {
	if at == nil {
		return "-"
	}
	return fmt.Sprint(at.Sub(created).Hours() / 24)
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		status    corev1beta1.ProjectStatus
		state     State // Now is replaced by the day
		day       int
		change    func(*Periods)
		since, at string
		deleted   bool
		next      time.Duration
	}{
		"young":                     {day: 29, since: "-", at: "-", next: 12 * time.Hour},
		"old enough":                {day: 30, since: "30", at: "-", next: 12 * time.Hour},
		"active meanwhile":          {day: 59, status: corev1beta1.ProjectStatus{LastActivityTimestamp: after(30)}, since: "-", at: "-", next: 12 * time.Hour},
		"active long ago":           {day: 60, status: corev1beta1.ProjectStatus{LastActivityTimestamp: after(30)}, since: "60", at: "-", next: 12 * time.Hour},
		"used":                      {day: 200, state: State{Used: true}, status: corev1beta1.ProjectStatus{StaleSinceTimestamp: after(40), StaleAutoDeleteTimestamp: after(130)}, since: "-", at: "-", next: 12 * time.Hour},
		"skipped":                   {day: 200, state: State{Skipped: true}, status: corev1beta1.ProjectStatus{StaleSinceTimestamp: after(40), StaleAutoDeleteTimestamp: after(130)}, since: "-", at: "-", next: 12 * time.Hour},
		"in the grace period":       {day: 53, status: corev1beta1.ProjectStatus{StaleSinceTimestamp: after(40)}, since: "40", at: "-", next: 12 * time.Hour},
		"announced":                 {day: 54, status: corev1beta1.ProjectStatus{StaleSinceTimestamp: after(40)}, since: "40", at: "130", next: 12 * time.Hour},
		"due":                       {day: 130, status: corev1beta1.ProjectStatus{StaleSinceTimestamp: after(40), StaleAutoDeleteTimestamp: after(130)}, since: "40", at: "130", deleted: true},
		"never announced":           {day: 130, status: corev1beta1.ProjectStatus{StaleSinceTimestamp: after(40)}, since: "40", at: "130", deleted: true},
		"shorter expiration":        {day: 100, change: func(p *Periods) { p.Expiration = 20 * day }, status: corev1beta1.ProjectStatus{StaleSinceTimestamp: after(40), StaleAutoDeleteTimestamp: after(130)}, since: "40", at: "130", next: 12 * time.Hour},
		"longer expiration":         {day: 130, change: func(p *Periods) { p.Expiration = 100 * day }, status: corev1beta1.ProjectStatus{StaleSinceTimestamp: after(40), StaleAutoDeleteTimestamp: after(130)}, since: "40", at: "140", next: 12 * time.Hour},
		"longer grace period":       {day: 54, change: func(p *Periods) { p.Grace = 20 * day }, status: corev1beta1.ProjectStatus{StaleSinceTimestamp: after(40), StaleAutoDeleteTimestamp: after(130)}, since: "40", at: "-", next: 12 * time.Hour},
		"longer minimum lifetime":   {day: 54, change: func(p *Periods) { p.MinimumLifetime = 60 * day }, status: corev1beta1.ProjectStatus{StaleSinceTimestamp: after(40)}, since: "-", at: "-", next: 12 * time.Hour},
		"next step before the sync": {day: 29, change: func(p *Periods) { p.Sync = 48 * time.Hour }, since: "-", at: "-", next: 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *after(0)}, Status: test.status}
			state, periods := test.state, usual
			state.Now = after(test.day).Time
			if test.change != nil {
				test.change(&periods)
			}
			got := Decide(project, state, periods)
			if days(got.StaleSince) != test.since || days(got.AutoDelete) != test.at || got.Delete != test.deleted {
				t.Errorf("stale since day %s, deleted at day %s, now: %t", days(got.StaleSince), days(got.AutoDelete), got.Delete)
			}
			if next := got.Next.Sub(state.Now); !test.deleted && next != test.next {
				t.Errorf("the next decision is due after %s", next)
			}
		})
	}
}

// TestLife runs an unused Project through its life, from one decision to the next, with a clock that is set forward.
func TestLife(t *testing.T) {
	clock := testclock.NewFakePassiveClock(created)
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *after(0)}}
	seen := map[string]string{}
	note := func(what string, at *metav1.Time) {
		if _, known := seen[what]; !known && at != nil {
			seen[what] = days(&metav1.Time{Time: clock.Now()})
		}
	}
	for range 1000 {
		decision := Decide(project, State{Now: clock.Now()}, usual)
		project.Status.StaleSinceTimestamp, project.Status.StaleAutoDeleteTimestamp = decision.StaleSince, decision.AutoDelete
		note("stale", decision.StaleSince)
		note("announced", decision.AutoDelete)
		if decision.Delete {
			note("deleted", decision.AutoDelete)
			break
		}
		clock.SetTime(decision.Next)
	}
	if seen["stale"] != "30" || seen["announced"] != "44" || seen["deleted"] != "120" {
		t.Errorf("the days are %v", seen)
	}
}

func TestTooMany(t *testing.T) {
	for _, test := range []struct {
		due, all int
		want     bool
	}{{0, 0, false}, {1, 1, false}, {3, 3, false}, {4, 4, true}, {4, 13, true}, {4, 14, false}, {30, 100, false}, {31, 100, true}} {
		projects := make([]corev1beta1.Project, test.all)
		for i := range test.due {
			projects[i].Status.StaleAutoDeleteTimestamp = after(10)
		}
		if got := TooMany(projects, after(10).Time); got != test.want {
			t.Errorf("%d of %d: %t", test.due, test.all, got)
		}
	}
	deleting := []corev1beta1.Project{{}, {}, {}, {}}
	for i := range deleting {
		deleting[i].Status.StaleAutoDeleteTimestamp, deleting[i].DeletionTimestamp = after(10), after(10)
	}
	if TooMany(deleting, after(10).Time) {
		t.Error("Projects that are being deleted count")
	}
}
