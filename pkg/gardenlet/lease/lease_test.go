package lease

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func TestHealth(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1, 0))
	health := NewHealth(20*time.Second, clock)
	check := func(when, want string) {
		t.Helper()
		err := health.Check(nil)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", when, err, want)
		}
	}
	clock.Step(time.Hour)
	check("before the first attempt", "")
	health.record(nil)
	clock.Step(20 * time.Second)
	check("at the end of the grace period", "")
	clock.Step(time.Second)
	check("after the grace period, while an attempt hangs", "not been renewed for 21s")
	health.record(errors.New("the garden is away"))
	check("after a failure", "the garden is away")
	health.record(nil)
	check("after a success", "")
}

func TestReady(t *testing.T) {
	earlier, now := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	condition := func(status gardencorev1beta1.ConditionStatus, reason string) gardencorev1beta1.Condition {
		return gardencorev1beta1.Condition{
			Type: gardencorev1beta1.SeedGardenletReady, Status: status, Reason: reason, Message: messageReady, LastTransitionTime: earlier, LastUpdateTime: earlier,
		}
	}
	other := gardencorev1beta1.Condition{Type: gardencorev1beta1.SeedExtensionsReady}
	for name, test := range map[string]struct {
		before  []gardencorev1beta1.Condition
		changed bool
		since   metav1.Time
	}{
		"none":              {nil, true, now},
		"another one":       {[]gardencorev1beta1.Condition{other}, true, now},
		"unknown":           {[]gardencorev1beta1.Condition{condition(gardencorev1beta1.ConditionUnknown, "StatusUnknown")}, true, now},
		"with other words":  {[]gardencorev1beta1.Condition{condition(gardencorev1beta1.ConditionTrue, "Else")}, true, earlier},
		"as it should be":   {[]gardencorev1beta1.Condition{other, condition(gardencorev1beta1.ConditionTrue, reasonReady)}, false, earlier},
		"still initialized": {[]gardencorev1beta1.Condition{condition(gardencorev1beta1.ConditionProgressing, "ConditionInitialized")}, true, now},
	} {
		t.Run(name, func(t *testing.T) {
			seed := &gardencorev1beta1.Seed{Status: gardencorev1beta1.SeedStatus{Conditions: test.before}}
			if changed := ready(seed, now.Time); changed != test.changed {
				t.Errorf("changed: %t", changed)
			}
			found := seed.Status.Conditions[len(seed.Status.Conditions)-1]
			if found.Status != gardencorev1beta1.ConditionTrue || found.Reason != reasonReady || !found.LastTransitionTime.Equal(&test.since) {
				t.Errorf("got %+v", found)
			}
		})
	}
}
