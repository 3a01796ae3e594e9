package shootmaintenance

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/maintenance"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// shootWith returns a Shoot with a window of one hour whose turn begins with the window.
func shootWith(begin, end string) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))}}
	for i := 0; shoot.UID == "" || maintenance.Spread(shoot.UID, 45*time.Minute) != 0; i++ {
		shoot.UID = types.UID(fmt.Sprint(i))
	}
	shoot.Spec.Maintenance = &corev1beta1.Maintenance{
		TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: begin, End: end},
		AutoUpdate: &corev1beta1.MaintenanceAutoUpdate{KubernetesVersion: true, MachineImageVersion: ptr.To(true)},
	}
	return shoot
}

func maintained(t *testing.T, state corev1beta1.LastOperationState, time string) func(*corev1beta1.Shoot) {
	t.Helper()
	when := metav1.NewTime(at(t, time))
	return func(s *corev1beta1.Shoot) {
		s.Status.LastMaintenance = &corev1beta1.LastMaintenance{State: state, TriggeredTime: when}
	}
}

func TestIsDue(t *testing.T) {
	const succeeded, failed, processing = corev1beta1.LastOperationStateSucceeded, corev1beta1.LastOperationStateFailed, corev1beta1.LastOperationStateProcessing
	for name, test := range map[string]struct {
		now    string
		change func(*corev1beta1.Shoot)
		want   bool
		next   string
	}{
		"before the window":         {"2026-07-05T20:59:59Z", nil, false, "2026-07-05T21:00:00Z"},
		"at its begin":              {"2026-07-05T21:00:00Z", nil, true, "2026-07-06T21:00:00Z"},
		"in it":                     {"2026-07-05T21:44:59Z", nil, true, "2026-07-06T21:00:00Z"},
		"15 minutes before its end": {"2026-07-05T21:45:00Z", nil, false, "2026-07-06T21:00:00Z"},
		"done":                      {"2026-07-05T21:10:00Z", maintained(t, succeeded, "2026-07-05T21:00:00Z"), false, "2026-07-06T21:00:00Z"},
		"failed":                    {"2026-07-05T21:10:00Z", maintained(t, failed, "2026-07-05T21:00:00Z"), false, "2026-07-06T21:00:00Z"},
		"interrupted":               {"2026-07-05T21:10:00Z", maintained(t, processing, "2026-07-05T21:00:00Z"), true, "2026-07-06T21:00:00Z"},
		"done yesterday":            {"2026-07-05T21:00:00Z", maintained(t, succeeded, "2026-07-04T21:00:00Z"), true, "2026-07-06T21:00:00Z"},
		"done on request before":    {"2026-07-05T21:00:00Z", maintained(t, succeeded, "2026-07-05T20:59:59Z"), true, "2026-07-06T21:00:00Z"},
		"missed":                    {"2026-07-08T12:00:00Z", maintained(t, succeeded, "2026-07-04T21:00:00Z"), false, "2026-07-08T21:00:00Z"},
		"created in the window":     {"2026-07-05T21:10:00Z", func(s *corev1beta1.Shoot) { s.CreationTimestamp = metav1.NewTime(at(t, "2026-07-05T21:00:01Z")) }, false, "2026-07-06T21:00:00Z"},
		"the day after":             {"2026-07-06T21:00:00Z", func(s *corev1beta1.Shoot) { s.CreationTimestamp = metav1.NewTime(at(t, "2026-07-05T21:00:01Z")) }, true, "2026-07-07T21:00:00Z"},
		"requested":                 {"2026-07-05T12:00:00Z", request(constants.OperationMaintain), true, "2026-07-05T21:00:00Z"},
		"requested, though done": {"2026-07-05T21:10:00Z", func(s *corev1beta1.Shoot) {
			maintained(t, succeeded, "2026-07-05T21:00:00Z")(s)
			request("maintain")(s)
		}, true, "2026-07-06T21:00:00Z"},
		"another request":              {"2026-07-05T12:00:00Z", request("reconcile"), false, "2026-07-05T21:00:00Z"},
		"being deleted":                {"2026-07-05T21:00:00Z", func(s *corev1beta1.Shoot) { s.DeletionTimestamp = ptr.To(metav1.Now()) }, false, ""},
		"requested, but being deleted": {"2026-07-05T12:00:00Z", func(s *corev1beta1.Shoot) { s.DeletionTimestamp = ptr.To(metav1.Now()); request("maintain")(s) }, false, ""},
		"clocks put forward in Europe": {"2026-03-29T21:00:00Z", nil, true, "2026-03-30T21:00:00Z"},
		"clocks put back in Europe":    {"2026-10-25T21:00:00Z", nil, true, "2026-10-26T21:00:00Z"},
		"before it, clocks put back":   {"2026-10-25T20:59:59Z", nil, false, "2026-10-25T21:00:00Z"},
		"another offset":               {"2026-07-05T21:00:00Z", window("023000+0530", "033000+0530"), true, "2026-07-06T21:00:00Z"},
		"around midnight, before":      {"2026-07-05T23:45:00Z", window("233000+0000", "003000+0000"), true, "2026-07-06T23:30:00Z"},
		"around midnight, after":       {"2026-07-06T00:10:00Z", window("233000+0000", "003000+0000"), true, "2026-07-06T23:30:00Z"},
		"around midnight, done": {"2026-07-06T00:10:00Z", func(s *corev1beta1.Shoot) {
			window("233000+0000", "003000+0000")(s)
			maintained(t, succeeded, "2026-07-05T23:31:00Z")(s)
		}, false, "2026-07-06T23:30:00Z"},
		"around midnight, a day before": {"2026-07-06T00:10:00Z", func(s *corev1beta1.Shoot) {
			window("233000+0000", "003000+0000")(s)
			maintained(t, succeeded, "2026-07-04T23:31:00Z")(s)
		}, true, "2026-07-06T23:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shoot := shootWith("220000+0100", "230000+0100")
			if test.change != nil {
				test.change(shoot)
			}
			due, next := IsDue(shoot, at(t, test.now)), ""
			if !due.Next.IsZero() {
				next = due.Next.UTC().Format(time.RFC3339)
			}
			if due.Run != test.want || next != test.next {
				t.Errorf("got %t, next at %s, want %t, next at %s", due.Run, next, test.want, test.next)
			}
			kept := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{UID: shoot.UID, DeletionTimestamp: shoot.DeletionTimestamp}}
			Keep(kept, shoot)
			if cached := IsDue(kept, at(t, test.now)); cached != due {
				t.Errorf("from what the cache keeps: %+v, want %+v", cached, due)
			}
		})
	}
}

func request(operations string) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, constants.AnnotationGardenerOperation, operations)
	}
}

func window(begin, end string) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) {
		s.Spec.Maintenance.TimeWindow = &corev1beta1.MaintenanceTimeWindow{Begin: begin, End: end}
	}
}

// TestSpread checks that Shoots with one window are maintained at different times of it, each once, also if the window is short.
func TestSpread(t *testing.T) {
	t.Parallel()
	for end, minutes := range map[string]int{"223000+0000": 15, "230000+0000": 45, "040000+0000": 345} {
		times := map[time.Duration]int{}
		begin := at(t, "2026-07-05T22:00:00Z")
		for i := range 1000 {
			shoot := shootWith("220000+0000", end)
			shoot.UID = types.UID(fmt.Sprintf("%d-%d", i, i*i))
			first := IsDue(shoot, begin.Add(-time.Hour))
			when := first.Next.Sub(begin)
			times[when]++
			if first.Run || when < 0 || when >= time.Duration(minutes)*time.Minute || !IsDue(shoot, first.Next).Run || IsDue(shoot, first.Next.Add(-time.Second)).Run {
				t.Fatalf("until %s: maintained %s after its begin", end, when)
			}
		}
		if len(times) < minutes*9/10 {
			t.Errorf("until %s: only %d times", end, len(times))
		}
	}
}
