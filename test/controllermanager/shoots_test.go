package controllermanager

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// hibernatesShoot checks that a schedule that was missed half an hour ago is executed when the API server accepts it, once,
// and not again when a user wakes the Shoot.
func (f *fixture) hibernatesShoot() {
	shoot := example(f, "shoot.yaml", &corev1beta1.Shoot{})
	kit.Must(f, f.client.Get(f.Context(), client.ObjectKeyFromObject(shoot), shoot))
	now := time.Now().UTC().Truncate(time.Second)
	before, missed := now.Add(-time.Hour), now.Add(-30*time.Minute)
	shoot.Status.LastHibernationTriggerTime = ptr.To(metav1.NewTime(before))
	kit.WriteStatus(f, f.client, shoot)
	kit.Change(f, f.client, shoot, func() {
		shoot.Spec.Hibernation = &corev1beta1.Hibernation{Schedules: []corev1beta1.HibernationSchedule{{
			Start: ptr.To(fmt.Sprintf("%d %d * * *", missed.Minute(), missed.Hour())),
		}}}
	})
	f.eventuallyTold(shoot, "HibernationScheduleFailed") // the resources in etcd are not known to be encrypted
	kit.Must(f, f.client.Get(f.Context(), client.ObjectKeyFromObject(shoot), shoot))
	shoot.Status.Credentials = &corev1beta1.ShootCredentials{EncryptionAtRest: &corev1beta1.EncryptionAtRest{
		Resources: shoot.Spec.Kubernetes.KubeAPIServer.EncryptionConfig.Resources,
		Provider:  corev1beta1.EncryptionProviderStatus{Type: corev1beta1.EncryptionProviderTypeAESCBC},
	}}
	kit.WriteStatus(f, f.client, shoot)
	kit.EventuallyTrue(f, "the Shoot is hibernated, and this is recorded", func() bool {
		return f.exists(shoot) && ptr.Deref(shoot.Spec.Hibernation.Enabled, false) && shoot.Status.LastHibernationTriggerTime.After(missed)
	})
	f.eventuallyTold(shoot, "Hibernated")
	kit.Change(f, f.client, shoot, func() { shoot.Spec.Hibernation.Enabled = ptr.To(false) })
	f.quiet()
	if kit.Must(f, f.client.Get(f.Context(), client.ObjectKeyFromObject(shoot), shoot)); *shoot.Spec.Hibernation.Enabled {
		f.Error("the schedule was executed again")
	}
}

// retriesShoot checks that an operation that failed because of a rate limit is retried once: the API server raises the
// generation then.
func (f *fixture) retriesShoot() {
	shoot := example(f, "shoot.yaml", &corev1beta1.Shoot{})
	kit.Must(f, f.client.Get(f.Context(), client.ObjectKeyFromObject(shoot), shoot))
	before, failed := shoot.Status, shoot.Generation
	shoot.Status.ObservedGeneration = failed
	shoot.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateFailed, Description: "too many requests", LastUpdateTime: metav1.Now(),
	}
	shoot.Status.LastErrors = []corev1beta1.LastError{{
		Description: "too many requests", Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraRateLimitsExceeded},
	}}
	kit.WriteStatus(f, f.client, shoot)
	kit.EventuallyTrue(f, "the operation is retried", func() bool { return f.exists(shoot) && shoot.Generation > failed })
	f.quiet()
	kit.Must(f, f.client.Get(f.Context(), client.ObjectKeyFromObject(shoot), shoot))
	if shoot.Generation != failed+1 {
		f.Errorf("the generation was raised from %d to %d", failed, shoot.Generation)
	}
	shoot.Status = before
	kit.WriteStatus(f, f.client, shoot)
}

// eventuallyTold waits for an Event about a Shoot.
func (f *fixture) eventuallyTold(shoot *corev1beta1.Shoot, reason string) {
	f.Helper()
	kit.EventuallyTrue(f, "an Event has the reason "+reason, func() bool {
		var events corev1.EventList
		kit.Must(f, f.client.List(f.Context(), &events, client.InNamespace(shoot.Namespace)))
		return slices.ContainsFunc(events.Items, func(event corev1.Event) bool {
			return event.Reason == reason && event.InvolvedObject.UID == shoot.UID
		})
	})
}
