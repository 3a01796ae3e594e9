package watches_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/watches"
)

func TestNotifier(t *testing.T) {
	notifier := watches.NewNotifier(2)
	for _, name := range []string{"a", "b", "dropped"} {
		notifier.Notify(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	requested := start(t, notifier.Source(func(_ context.Context, object client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
	}))
	if a, b := requested(), requested(); a != "a" || b != "b" {
		t.Errorf("got requests for %q and %q, want a and b", a, b)
	}
	notifier.Wake()
	if got := requested(); got != "" {
		t.Errorf("got a request for %q, want one for an empty object", got)
	}
}

func TestAtStart(t *testing.T) {
	requested := start(t, watches.AtStart(reconcile.Request{NamespacedName: types.NamespacedName{Name: "one"}}))
	if got := requested(); got != "one" {
		t.Errorf("got a request for %q, want one", got)
	}
}

// start starts a source, and returns a function that waits for the next name that it requests.
func start(t *testing.T, of source.Source) func() string {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := of.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return func() string {
		request, _ := queue.Get()
		queue.Done(request)
		return request.Name
	}
}

func TestErrorsNameTheController(t *testing.T) {
	mgr, err := manager.New(&rest.Config{}, manager.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (watches.Controller{Name: "one"}).AddTo(mgr); err == nil || !strings.Contains(err.Error(), "add the controller one") {
		t.Errorf("got %v, want an error that names the controller", err)
	}
}
