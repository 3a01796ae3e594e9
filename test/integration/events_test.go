package integration

import (
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestManyFailuresMakeFewEvents: a ManagedResource that fails differently in each of a hundred reconciles records few
// Events, and the condition reports the last failure.
func TestManyFailuresMakeFewEvents(t *testing.T) {
	f := newFixture(t)
	f.start(onlyEvents)
	bad := func(i int) string { return f.configMap(fmt.Sprintf("Bad-%d", i), "x") }
	f.manage("set", bad(0))
	for i := range 100 {
		f.secret("set", "objects.yaml", bad(i))
		f.eventually("the condition reports the failure", func() bool { return strings.Contains(applied(f.read("set")).Message, fmt.Sprintf("Bad-%d", i)) })
	}
	list, failed := &eventsv1.EventList{}, 0
	f.eventually("Events are recorded", func() bool {
		must(t, f.client.List(f.ctx, list, client.InNamespace(f.namespace)))
		return len(list.Items) > 0
	})
	for _, event := range list.Items {
		if event.Reason == "ApplyFailed" && event.Regarding.Name == "set" {
			failed++
		}
	}
	if failed == 0 || failed > 20 { // five, and one more every two minutes on a slow machine
		t.Errorf("%d Events for a hundred failures, want some", failed)
	}
}
