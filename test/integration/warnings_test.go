package integration

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// report writes an Event about an object, like a controller.
func (f *fixture) report(about *unstructured.Unstructured, eventType, message string) {
	f.Helper()
	at := metav1.NewTime(f.clock.Now().Add(-3 * time.Minute))
	must(f, f.client.Create(f.ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, GenerateName: "event-"},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: about.GetKind(), Namespace: f.namespace, Name: about.GetName(), UID: about.GetUID(),
		},
		Type: eventType, Reason: "Reported", Message: message, Source: corev1.EventSource{Component: "service-controller"},
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}))
}

// stuckService is a ManagedResource that is being deleted, with a Service whose deletion is blocked.
func (f *fixture) stuckService() *unstructured.Unstructured {
	f.Helper()
	mr := f.manage("set", fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: front, namespace: %s, "+
		"finalizers: [example.org/stuck]}\nspec: {ports: [{port: 80}]}\n", f.namespace),
		strings.Replace(f.configMap("beside", "1"), "metadata:\n", "metadata:\n  finalizers: [example.org/stuck]\n", 1))
	f.reconcileOK("set")
	f.beginDeletion(mr)
	return f.getObject("v1", "Service", "front")
}

// countEventReads counts the requests for Events of the target cluster. If err is set, it answers them with err.
func (f *fixture) countEventReads(err error) *int {
	count := 0
	f.requests.breakWith(func(request *http.Request) error {
		if strings.HasSuffix(request.URL.Path, "/events") {
			count++
			return err
		}
		return nil
	})
	return &count
}

func TestEventsOfAStuckService(t *testing.T) {
	f := newFixture(t)
	reads := f.countEventReads(nil)
	service := f.stuckService()
	if *reads > 0 {
		t.Error("Events are read before anything is stuck")
	}
	f.report(service, corev1.EventTypeWarning, "the load balancer is in use")
	f.report(service, corev1.EventTypeNormal, "all is well")
	f.report(f.getObject("v1", "ConfigMap", "beside"), corev1.EventTypeWarning, "of something else")
	former := service.DeepCopy()
	former.SetUID("of-a-former-one")
	f.report(former, corev1.EventTypeWarning, "of a former one")

	f.clock.Step(5 * time.Second) // the status does not report every reconcile
	mr, _, err := f.reconcile("set")
	must(t, err)
	wantContains(t, applied(mr).Message, "beside: it is being deleted",
		"front: it is being deleted\n\n-> Events:\n* service-controller reported 3m ago: the load balancer is in use")
	for _, other := range []string{"all is well", "something else", "former"} {
		if strings.Contains(applied(mr).Message, other) {
			t.Errorf("%q is in: %s", other, applied(mr).Message)
		}
	}

	f.report(service, corev1.EventTypeWarning, "and the cloud is down")
	again, _, _ := f.reconcile("set")
	if *reads != 1 || again.ResourceVersion != mr.ResourceVersion {
		t.Errorf("the Events were read %d times, the message is %s", *reads, applied(again).Message)
	}
	f.clock.Step(5 * time.Second)
	mr, _, _ = f.reconcile("set")
	wantContains(t, applied(mr).Message, "the load balancer is in use", "and the cloud is down")
}

func TestEventsThatCannotBeRead(t *testing.T) {
	f := newFixture(t)
	f.stuckService()
	reads := f.countEventReads(errors.New("forbidden"))
	for range 2 {
		mr, result, err := f.reconcile("set")
		if condition := applied(mr); err != nil || result.RequeueAfter <= 0 ||
			condition.Reason != resourcesv1alpha1.ReasonDeletionPending || strings.Contains(condition.Message, "Events") {
			t.Errorf("error %v, requeue interval %s, %s: %s", err, result.RequeueAfter, condition.Reason, condition.Message)
		}
	}
	if *reads != 1 {
		t.Errorf("Events that cannot be read were requested %d times", *reads)
	}
}
