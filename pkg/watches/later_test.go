package watches

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestNewLast checks the order of requests: changes and objects that are not new come before new ones, and those before the objects that existed
// when the controller started. A new object that changes is not new any longer.
func TestNewLast(t *testing.T) {
	t.Parallel()
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	of := func(name, uid string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"new": uid}}}
	}
	handler := &newLast{later: func(object client.Object) bool { return object.GetLabels()["new"] == "true" }}
	handler.Create(t.Context(), event.CreateEvent{Object: of("existing", "true"), IsInInitialList: true}, queue)
	handler.Create(t.Context(), event.CreateEvent{Object: of("new-1", "true")}, queue)
	handler.Create(t.Context(), event.CreateEvent{Object: of("new-2", "true")}, queue)
	handler.Create(t.Context(), event.CreateEvent{Object: of("new-and-changed", "true")}, queue)
	handler.Create(t.Context(), event.CreateEvent{Object: of("moved", "false")}, queue)
	for _, changed := range []string{"new-and-changed", "changed"} {
		after := of(changed, "true")
		after.ResourceVersion = "2" // otherwise, the event is one of a relist
		handler.Update(t.Context(), event.UpdateEvent{ObjectOld: of(changed, "true"), ObjectNew: after}, queue)
	}
	var order []string
	for range 6 {
		request, _, _ := queue.GetWithPriority()
		order = append(order, request.Name)
		queue.Done(request)
	}
	slices.Sort(order[:3])
	if want := []string{"changed", "moved", "new-and-changed", "new-1", "new-2", "existing"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
}
