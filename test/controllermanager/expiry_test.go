package controllermanager

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// keepsState checks that the ShootState of a Shoot has a finalizer while its control plane moves.
func (u *uses) keepsState() {
	state := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: u.one.Name}}
	u.create(state)
	kept := func() bool {
		return u.exists(state) && controllerutil.ContainsFinalizer(state, constants.FinalizerShootState)
	}
	operates := func(kind corev1beta1.LastOperationType, value corev1beta1.LastOperationState) {
		u.Helper()
		kit.Must(u, u.client.Get(u.Context(), client.ObjectKeyFromObject(u.one), u.one))
		u.one.Status.LastOperation = &corev1beta1.LastOperation{Type: kind, State: value, Description: "test", LastUpdateTime: metav1.Now()}
		kit.WriteStatus(u, u.client, u.one)
	}
	operates(corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationStateProcessing)
	kit.EventuallyTrue(u, "the ShootState is kept during a migration", kept)
	operates(corev1beta1.LastOperationTypeRestore, corev1beta1.LastOperationStateProcessing)
	u.delete(state)
	if !kept() {
		u.Error("the ShootState is deleted during the restoration")
	}
	operates(corev1beta1.LastOperationTypeRestore, corev1beta1.LastOperationStateSucceeded)
	kit.EventuallyTrue(u, "the ShootState is released after the restoration", func() bool { return !u.exists(state) })
}

// expiresEvents checks that an Event about a Bastion is deleted when it is one hour old, and one about a Shoot is not.
func (u *uses) expiresEvents() {
	event := func(name, kind string, age time.Duration) *eventsv1.Event {
		made := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name}, EventTime: metav1.NewMicroTime(time.Now().Add(-age)), Action: "Test", Reason: "Test",
			ReportingController: "test", ReportingInstance: "test", Type: corev1.EventTypeNormal,
			Regarding: corev1.ObjectReference{APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: kind, Namespace: project, Name: "one"},
		}
		u.create(made)
		return made
	}
	const soon = 2 * time.Second
	old, about, fresh := event("old", "Bastion", 2*time.Hour), event("about", "Shoot", 2*time.Hour), event("fresh", "Bastion", 0)
	next := event("next", "Bastion", time.Hour-soon)
	kit.EventuallyTrue(u, "the old Event is deleted", func() bool { return !u.exists(old) })
	kit.EventuallyTrue(u, "the next Event is deleted later", func() bool { return !u.exists(next) })
	if age := time.Since(next.EventTime.Time); age < time.Hour {
		u.Errorf("an Event was deleted after %s", age)
	}
	if !u.exists(about) || !u.exists(fresh) {
		u.Error("an Event about a Shoot, or a new one, was deleted")
	}
}
