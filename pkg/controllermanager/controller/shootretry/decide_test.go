package shootretry

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

var (
	failedAt = time.Date(2026, 1, 5, 20, 0, 0, 0, time.UTC)
	periods  = Periods{Retry: 10 * time.Minute, Jitter: 5 * time.Minute}
)

// failed returns a Shoot that failed because of a rate limit.
func failed(uid types.UID) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{UID: uid, Generation: 3}}
	shoot.Status.ObservedGeneration = 3
	shoot.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateFailed, LastUpdateTime: metav1.NewTime(failedAt),
	}
	shoot.Status.LastErrors = []corev1beta1.LastError{
		{Description: "other"}, {Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraQuotaExceeded, corev1beta1.ErrorInfraRateLimitsExceeded}},
	}
	return shoot
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1beta1.Shoot)
		want   bool
	}{
		"rate limit":      {func(*corev1beta1.Shoot) {}, true},
		"deletion":        {func(s *corev1beta1.Shoot) { s.Status.LastOperation.Type = corev1beta1.LastOperationTypeDelete }, true},
		"no operation":    {func(s *corev1beta1.Shoot) { s.Status.LastOperation = nil }, false},
		"an error":        {func(s *corev1beta1.Shoot) { s.Status.LastOperation.State = corev1beta1.LastOperationStateError }, false},
		"other reason":    {func(s *corev1beta1.Shoot) { s.Status.LastErrors = s.Status.LastErrors[:1] }, false},
		"no reason":       {func(s *corev1beta1.Shoot) { s.Status.LastErrors = nil }, false},
		"other code":      {func(s *corev1beta1.Shoot) { s.Status.LastErrors[1].Codes = s.Status.LastErrors[1].Codes[:1] }, false},
		"changed already": {func(s *corev1beta1.Shoot) { s.Generation++ }, false},
	} {
		shoot := failed("uid")
		test.change(shoot)
		kept := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{UID: shoot.UID}}
		if last := shoot.Status.LastOperation; last != nil {
			kept.Status.LastOperation = &corev1beta1.LastOperation{Type: last.Type, State: last.State}
		}
		Keep(kept, shoot)
		for what, each := range map[string]*corev1beta1.Shoot{"the Shoot": shoot, "what the cache keeps": kept} {
			at, got := Decide(each, periods)
			if want := failedAt.Add(periods.Retry); got != test.want || got && (at.Before(want) || !at.Before(want.Add(periods.Jitter))) {
				t.Errorf("%s, %s: got %t at %s, want %t", name, what, got, at, test.want)
			}
		}
	}
}

// TestDelays checks that Shoots that failed together are not retried together.
func TestDelays(t *testing.T) {
	times := map[time.Time]int{}
	for i := range 1000 {
		at, _ := Decide(failed(types.UID(fmt.Sprintf("%d-%d", i, i*i))), periods)
		times[at]++
	}
	for at, count := range times {
		if count > 16 {
			t.Errorf("%d of 1000 Shoots are retried at %s", count, at)
		}
	}
	if at, _ := Decide(failed("uid"), Periods{Retry: time.Hour}); !at.Equal(failedAt.Add(time.Hour)) {
		t.Errorf("without jitter, it is retried at %s", at)
	}
}
