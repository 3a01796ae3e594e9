package controllermanager

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// endsLifetime checks that the end of a Shoot follows its Quota, that the annotation can extend it to twice the lifetime and shorten it, and
// that the Shoot is deleted at the end. A Shoot without a Quota has no end.
func (l *lives) endsLifetime() {
	const day = 24 * time.Hour
	trial := l.shoot("trial", func(s *corev1beta1.Shoot) { s.Spec.CredentialsBindingName = ptr.To("trial") })
	free := l.shoot("free", nil)
	annotated := func(expected time.Duration) {
		l.Helper()
		want := trial.CreationTimestamp.Add(expected).UTC().Format(time.RFC3339)
		kit.EventuallyTrue(l, "the Shoot ends at "+want, func() bool {
			return l.exists(trial) && trial.Annotations[constants.AnnotationShootExpirationTimestamp] == want
		})
	}
	annotate := func(value string) {
		l.Helper()
		kit.Change(l, l.client, trial, func() {
			metav1.SetMetaDataAnnotation(&trial.ObjectMeta, constants.AnnotationShootExpirationTimestamp, value)
		})
	}
	lifetime := time.Duration(*l.quota.Spec.ClusterLifetimeDays) * day
	annotated(lifetime)
	annotate("2999-01-01T00:00:00Z")
	annotated(2 * lifetime)
	annotate(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	l.quiet()
	if l.exists(trial); trial.DeletionTimestamp != nil {
		l.Error("the Shoot is deleted before its end")
	}
	kit.Change(l, l.client, l.quota, func() { l.quota.Spec.ClusterLifetimeDays = nil })
	kit.EventuallyTrue(l, "without a lifetime, the Shoot has no end", func() bool {
		return l.exists(trial) && trial.Annotations[constants.AnnotationShootExpirationTimestamp] == ""
	})
	kit.Change(l, l.client, l.quota, func() { l.quota.Spec.ClusterLifetimeDays = ptr.To[int32](1) })
	annotated(day)
	annotate(time.Now().Add(-time.Second).UTC().Format(time.RFC3339))
	kit.EventuallyTrue(l, "the Shoot is deleted", func() bool { return l.exists(trial) && trial.DeletionTimestamp != nil })
	l.eventuallyTold(trial, "LifetimeExpired")
	if l.exists(free); free.DeletionTimestamp != nil || free.Annotations[constants.AnnotationShootExpirationTimestamp] != "" {
		l.Error("a Shoot without a Quota ends")
	}
	l.remove(trial)
	l.remove(free)
}
