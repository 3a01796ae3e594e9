package backup

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// operated returns an extension object whose last operation ended some time ago.
func operated(state corev1beta1.LastOperationState, ago time.Duration) *Extension {
	live := &Extension{Generation: 1, Annotations: map[string]string{}}
	live.Status.ObservedGeneration = 1
	live.Status.LastOperation = &corev1beta1.LastOperation{State: state, LastUpdateTime: metav1.NewTime(now.Add(-ago))}
	return live
}

func TestAsk(t *testing.T) {
	const again = 12 * time.Hour
	asked := func(ago time.Duration) Asked { return Asked{Digest: "a", At: now.Add(-ago)} }
	pending := operated(corev1beta1.LastOperationStateSucceeded, time.Hour)
	pending.Annotations[constants.AnnotationGardenerOperation] = constants.OperationReconcile
	for name, test := range map[string]struct {
		before Asked
		live   *Extension
		due    bool
		next   time.Time
	}{
		"never asked":              {Asked{}, nil, true, time.Time{}},
		"other digest":             {Asked{Digest: "b", At: now}, operated(corev1beta1.LastOperationStateSucceeded, 0), true, time.Time{}},
		"not created yet":          {asked(time.Hour), nil, false, time.Time{}},
		"not begun":                {asked(time.Hour), pending, false, time.Time{}},
		"begun and lost":           {asked(2 * time.Minute), &Extension{}, true, time.Time{}},
		"begun a moment ago":       {asked(20 * time.Second), &Extension{}, false, now.Add(40 * time.Second)},
		"older than what is asked": {asked(time.Minute), operated(corev1beta1.LastOperationStateSucceeded, time.Hour), true, time.Time{}},
		"failed":                   {asked(time.Hour), operated(corev1beta1.LastOperationStateFailed, 30*time.Minute), true, time.Time{}},
		"failed a moment ago":      {asked(30 * time.Second), operated(corev1beta1.LastOperationStateFailed, 0), false, now.Add(30 * time.Second)},
		"tries again itself":       {asked(time.Hour), operated(corev1beta1.LastOperationStateError, time.Minute), false, time.Time{}},
		"succeeded":                {asked(2 * time.Hour), operated(corev1beta1.LastOperationStateSucceeded, time.Hour), false, now.Add(11 * time.Hour)},
		"succeeded long ago":       {asked(13 * time.Hour), operated(corev1beta1.LastOperationStateSucceeded, again), true, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, next := Ask(test.before, "a", test.live, again, now)
			want := test.before
			if test.due {
				want = Asked{Digest: "a", At: now}
			}
			if got != want || !next.Equal(test.next) {
				t.Errorf("%+v, next %s, want %+v, %s", got, next, want, test.next)
			}
		})
	}
}

func TestReady(t *testing.T) {
	asked := Asked{Digest: "a", At: now.Add(-time.Minute)}
	ready := func(change func(*Extension)) *Extension {
		live := operated(corev1beta1.LastOperationStateSucceeded, time.Second)
		live.Annotations[constants.AnnotationGardenerTimestamp] = asked.At.Format(time.RFC3339Nano)
		change(live)
		return live
	}
	for name, test := range map[string]struct {
		live *Extension
		want string
	}{
		"ready":         {ready(func(*Extension) {}), ""},
		"missing":       {nil, "the extension object does not exist yet"},
		"old timestamp": {ready(func(e *Extension) { e.Annotations[constants.AnnotationGardenerTimestamp] = "2026-01-01T00:00:00Z" }), "the extension object has not been changed yet"},
		"pending": {ready(func(e *Extension) {
			e.Annotations[constants.AnnotationGardenerOperation] = constants.OperationReconcile
		}), "the extension has not started"},
		"error":           {ready(func(e *Extension) { e.Status.LastError = &corev1beta1.LastError{Description: "no rights"} }), "no rights"},
		"not observed":    {ready(func(e *Extension) { e.Generation = 2 }), "the extension has not observed the object yet"},
		"an older finish": {ready(func(e *Extension) { e.Status.LastOperation.LastUpdateTime = metav1.NewTime(now.Add(-time.Hour)) }), "the extension has not completed the last request"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.live.Ready(asked); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestAskedTwiceInASecond checks that the result of the first operation does not count as that of the second one.
func TestAskedTwiceInASecond(t *testing.T) {
	first, _ := Ask(Asked{}, "reconcile", nil, 0, now)
	live := operated(corev1beta1.LastOperationStateSucceeded, 0)
	live.Annotations[constants.AnnotationGardenerTimestamp] = first.At.Format(time.RFC3339Nano)
	if why := live.Ready(first); why != "" {
		t.Errorf("the first operation: %s", why)
	}
	second, _ := Ask(first, "migrate", live, 0, now.Add(300*time.Millisecond))
	if live.Ready(second) == "" {
		t.Error("the second operation counts as finished")
	}
	live.Annotations[constants.AnnotationGardenerTimestamp] = second.At.Format(time.RFC3339Nano)
	if why := live.Ready(second); why != "" {
		t.Errorf("the second operation, finished in the same second: %s", why)
	}
}
