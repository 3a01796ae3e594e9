package projectactivity

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

var now = time.Date(2026, 1, 5, 20, 0, 0, 0, time.UTC)

func TestCreated(t *testing.T) {
	for age, want := range map[time.Duration]bool{0: true, time.Hour: true, time.Hour + time.Second: false} {
		object := &corev1beta1.Quota{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		if at, is := Created(object, now); is != want || !at.Equal(now.Add(-age)) {
			t.Errorf("an object of age %s: %s, %t", age, at, is)
		}
	}
}

func TestUpdated(t *testing.T) {
	meta := func(version string, generation int64) metav1.ObjectMeta {
		return metav1.ObjectMeta{ResourceVersion: version, Generation: generation}
	}
	for name, test := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"the same Quota":        {&corev1beta1.Quota{ObjectMeta: meta("1", 0)}, &corev1beta1.Quota{ObjectMeta: meta("1", 0)}, false},
		"changed Quota":         {&corev1beta1.Quota{ObjectMeta: meta("1", 0)}, &corev1beta1.Quota{ObjectMeta: meta("2", 0)}, true},
		"changed Shoot":         {&corev1beta1.Shoot{ObjectMeta: meta("1", 1)}, &corev1beta1.Shoot{ObjectMeta: meta("2", 2)}, true},
		"status of Shoot":       {&corev1beta1.Shoot{ObjectMeta: meta("1", 1)}, &corev1beta1.Shoot{ObjectMeta: meta("2", 1)}, false},
		"status of BackupEntry": {&corev1beta1.BackupEntry{ObjectMeta: meta("1", 1)}, &corev1beta1.BackupEntry{ObjectMeta: meta("2", 1)}, false},
	} {
		if got := Updated(test.before, test.after); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestLater(t *testing.T) {
	recorded := &corev1beta1.Project{}
	if !Later(recorded, now) {
		t.Error("the first activity is not recorded")
	}
	recorded.Status.LastActivityTimestamp = &metav1.Time{Time: now}
	for offset, want := range map[time.Duration]bool{-time.Hour: false, 0: false, 999 * time.Millisecond: false, time.Second: true} {
		if got := Later(recorded, now.Add(offset)); got != want {
			t.Errorf("an activity %s later: %t", offset, got)
		}
	}
}

func TestWait(t *testing.T) {
	recorded := &corev1beta1.Project{}
	if got := Wait(recorded, now); got != 0 {
		t.Errorf("the first activity waits %s", got)
	}
	recorded.Status.LastActivityTimestamp = &metav1.Time{Time: now}
	for passed, want := range map[time.Duration]time.Duration{0: time.Minute, 20 * time.Second: 40 * time.Second, time.Minute: 0, time.Hour: 0, -time.Hour: time.Minute} {
		if got := Wait(recorded, now.Add(passed)); got != want {
			t.Errorf("%s after the last one, an activity waits %s, want %s", passed, got, want)
		}
	}
}

// TestLatest checks that several activities are recorded as the last one.
func TestLatest(t *testing.T) {
	r := &reconciler{latest: map[string]time.Time{}}
	r.note("dev", now)
	r.note("dev", now.Add(-time.Hour))
	r.note("other", now.Add(time.Hour))
	if got := r.take("dev"); !got.Equal(now) {
		t.Errorf("the last activity is at %s", got)
	}
	if got := r.take("dev"); !got.IsZero() {
		t.Errorf("it is recorded again: %s", got)
	}
}
