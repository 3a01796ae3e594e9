package seedlifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// TestObserve checks since when a Lease counts as not renewed.
func TestObserve(t *testing.T) {
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	known := Observation{Renewed: before(65 * time.Second), Since: before(65 * time.Second), Looked: before(time.Minute)}
	for name, test := range map[string]struct {
		known         Observation
		renewed, want time.Time
	}{
		"the first look after a start":    {renewed: before(time.Hour), want: now},
		"no Lease at the first look":      {want: now},
		"not renewed":                     {known: known, renewed: known.Renewed, want: known.Since},
		"renewed":                         {known: known, renewed: before(20 * time.Second), want: before(20 * time.Second)},
		"renewed by a clock that is slow": {known: known, renewed: before(2 * time.Hour), want: known.Looked},
		"renewed by a clock that is fast": {known: known, renewed: now.Add(time.Hour), want: now},
		"deleted":                         {known: known, want: known.Looked},
	} {
		if got := test.known.Observe(test.renewed, now); !got.Since.Equal(test.want) || !got.Looked.Equal(now) || !got.Renewed.Equal(test.renewed) {
			t.Errorf("%s: got %+v, want %s", name, got, test.want)
		}
	}
}

// TestMass checks how many silent gardenlets are too many.
func TestMass(t *testing.T) {
	for _, test := range []struct {
		silent, all int
		want        bool
	}{{1, 1, false}, {2, 2, false}, {3, 3, true}, {3, 9, true}, {3, 10, false}, {30, 100, false}, {31, 100, true}} {
		if got := Mass(test.silent, test.all); got != test.want {
			t.Errorf("%d of %d: %t", test.silent, test.all, got)
		}
	}
}

// TestShootUnknown checks which conditions of a Shoot become Unknown, and that this is done once.
func TestShootUnknown(t *testing.T) {
	earlier := metav1.NewTime(now.Add(-time.Hour))
	shoot := &corev1beta1.Shoot{}
	shoot.Status.Conditions = []corev1beta1.Condition{
		{Type: corev1beta1.ShootControlPlaneHealthy, Status: corev1beta1.ConditionTrue, LastTransitionTime: earlier},
		{Type: corev1beta1.ShootAPIServerAvailable, Status: corev1beta1.ConditionUnknown, Reason: "Other", LastTransitionTime: earlier},
		{Type: "OfExtension", Status: corev1beta1.ConditionTrue},
	}
	if !ShootUnknown(shoot, now) || ShootUnknown(shoot, now.Add(time.Hour)) {
		t.Error("the conditions are not changed once")
	}
	found := func(kind corev1beta1.ConditionType) *corev1beta1.Condition {
		return corev1beta1.FindCondition(shoot.Status.Conditions, kind)
	}
	if healthy := found(corev1beta1.ShootControlPlaneHealthy); healthy.Status != corev1beta1.ConditionUnknown || healthy.Reason != reasonUnknown || !healthy.LastTransitionTime.Time.Equal(now) {
		t.Errorf("got %+v", healthy)
	}
	if found(corev1beta1.ShootEveryNodeReady) != nil || found("OfExtension").Status != corev1beta1.ConditionTrue || found(corev1beta1.ShootAPIServerAvailable).Reason != "Other" ||
		len(shoot.Status.Conditions) != len(conditions) || len(shoot.Status.Constraints) != len(constraints) {
		t.Errorf("the status is %+v", shoot.Status)
	}
	shoot.Spec.Provider.Workers = []corev1beta1.Worker{{}}
	if !ShootUnknown(shoot, now) || found(corev1beta1.ShootEveryNodeReady) == nil {
		t.Error("a Shoot with workers lacks the condition of nodes")
	}
}

// TestExpired checks when the certificate of a gardenlet has expired.
func TestExpired(t *testing.T) {
	for at, want := range map[time.Duration]bool{time.Second: false, 0: true, -time.Second: true} {
		seed := &corev1beta1.Seed{Status: corev1beta1.SeedStatus{ClientCertificateExpirationTimestamp: ptr.To(metav1.NewTime(now.Add(at)))}}
		if expired(seed, now) != want || expired(&corev1beta1.Seed{}, now) {
			t.Errorf("%s: not %t", at, want)
		}
	}
}
