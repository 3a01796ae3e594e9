package live

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestHealthNews(t *testing.T) {
	view, notified := NewView(Options{}), &told{}
	view.health.notify("shop") // there is no listener yet
	view.ListenHealth(func(origin string) { notified.add(types.NamespacedName{Name: origin}) })
	view.health.notify("shop")
	notified.want(t, "news", "shop")

	resume := view.SuspendHealth("shop")
	if !view.HealthSuspended("shop") || view.HealthSuspended("bank") {
		t.Error("the wrong origin is suspended")
	}
	view.health.notify("shop")
	view.health.notify("bank")
	view.health.notify("shop")
	notified.want(t, "suspended", "bank")
	resume()
	notified.want(t, "resumed", "shop")
	if view.HealthSuspended("shop") {
		t.Error("the origin is still suspended")
	}
	view.SuspendHealth("shop")()
	notified.want(t, "suspended without notifications")
	resume = view.SuspendHealth("shop")
	resume()
	resume()
	notified.want(t, "resumed twice")
	if len(view.health.suspended) != 0 {
		t.Errorf("unused entries remain: %v", view.health.suspended)
	}
}

// TestHealthNewsConcurrently checks that no notification is lost while an origin is suspended.
func TestHealthNewsConcurrently(t *testing.T) {
	view, notified := NewView(Options{}), &told{}
	view.ListenHealth(func(origin string) {
		if !view.HealthSuspended("another") { // a listener may call HealthSuspended
			notified.add(types.NamespacedName{Name: origin})
		}
	})
	var group sync.WaitGroup
	for i := range 8 {
		origin := fmt.Sprint(i)
		group.Go(func() {
			for range 200 {
				resume := view.SuspendHealth(origin)
				view.health.notify(origin)
				resume()
			}
		})
		group.Go(func() {
			for range 200 {
				view.health.notify(origin)
			}
		})
	}
	group.Wait()
	if told := len(notified.take()); told < 8*200 {
		t.Errorf("%d notifications, want at least one for each suspension", told)
	}
}
