package bastion

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	for name, test := range map[string]struct {
		change func(*operationsv1alpha1.Bastion, *corev1beta1.Shoot)
		gone   bool
		// want is whether it is deleted, and byTime whether that is because of a time.
		want, byTime bool
		next         time.Duration
	}{
		"in use":        {next: time.Hour},
		"Shoot gone":    {gone: true, want: true},
		"Shoot deleted": {change: func(_ *operationsv1alpha1.Bastion, s *corev1beta1.Shoot) { s.DeletionTimestamp = ptr.To(ago(0)) }, want: true},
		"Shoot moved":   {change: func(_ *operationsv1alpha1.Bastion, s *corev1beta1.Shoot) { s.Spec.SeedName = ptr.To("b") }, want: true},
		"no seed yet":   {change: func(b *operationsv1alpha1.Bastion, _ *corev1beta1.Shoot) { b.Spec.SeedName = nil }, next: time.Hour},
		"Shoot unbound": {change: func(_ *operationsv1alpha1.Bastion, s *corev1beta1.Shoot) { s.Spec.SeedName = nil }, next: time.Hour},
		"expired": {change: func(b *operationsv1alpha1.Bastion, _ *corev1beta1.Shoot) {
			b.Status.ExpirationTimestamp = ptr.To(ago(time.Second))
		}, want: true, byTime: true},
		"expires now": {change: func(b *operationsv1alpha1.Bastion, _ *corev1beta1.Shoot) {
			b.Status.ExpirationTimestamp = ptr.To(ago(0))
		}, want: true, byTime: true},
		"expires soon": {change: func(b *operationsv1alpha1.Bastion, _ *corev1beta1.Shoot) {
			b.Status.ExpirationTimestamp = ptr.To(ago(-time.Second))
		}, next: time.Second},
		"no expiry": {change: func(b *operationsv1alpha1.Bastion, _ *corev1beta1.Shoot) { b.Status.ExpirationTimestamp = nil }, next: 23 * time.Hour},
		"too old":   {change: func(b *operationsv1alpha1.Bastion, _ *corev1beta1.Shoot) { b.CreationTimestamp = ago(24 * time.Hour) }, want: true, byTime: true},
		"soon too old": {change: func(b *operationsv1alpha1.Bastion, _ *corev1beta1.Shoot) {
			b.CreationTimestamp = ago(24*time.Hour - time.Minute)
		}, next: time.Minute},
		"deleted already": {change: func(b *operationsv1alpha1.Bastion, _ *corev1beta1.Shoot) { b.DeletionTimestamp = ptr.To(ago(0)) }, gone: true},
	} {
		bastion := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Name: "b", CreationTimestamp: ago(time.Hour)}}
		bastion.Spec.SeedName, bastion.Spec.ShootRef.Name = ptr.To("a"), "s"
		bastion.Status.ExpirationTimestamp = ptr.To(ago(-time.Hour))
		shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1beta1.ShootSpec{SeedName: ptr.To("a")}}
		if test.change != nil {
			test.change(bastion, shoot)
		}
		if test.gone {
			shoot = nil
		}
		got := Decide(bastion, shoot, 24*time.Hour, now)
		var next time.Duration
		if !got.Next.IsZero() {
			next = got.Next.Sub(now)
		}
		if (got.Delete != "") != test.want || got.ByTime != test.byTime || next != test.next {
			t.Errorf("%s: got %+v, next in %s", name, got, next)
		}
	}
}
