package eventexpiry

import (
	"context"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// TestOff checks that the controller does not run if it is not configured.
func TestOff(t *testing.T) {
	t.Parallel()
	if err := add(context.Background(), nil, controller.Deps{Config: &v1alpha1.ControllersConfiguration{}}); err != nil {
		t.Error(err)
	}
}

func TestExpires(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	micro := func(minutes int) metav1.MicroTime {
		return metav1.NewMicroTime(start.Add(time.Duration(minutes) * time.Minute))
	}
	about := func(apiVersion, kind string) func(*eventsv1.Event) {
		return func(event *eventsv1.Event) { event.Regarding.APIVersion, event.Regarding.Kind = apiVersion, kind }
	}
	for name, test := range map[string]struct {
		change func(*eventsv1.Event)
		// minutes after the start; -1 for never.
		want int
	}{
		"created":        {func(*eventsv1.Event) {}, 60},
		"of the old API": {func(e *eventsv1.Event) { e.DeprecatedLastTimestamp = metav1.NewTime(micro(1).Time) }, 61},
		"occurred": {func(e *eventsv1.Event) {
			e.EventTime, e.DeprecatedLastTimestamp = micro(2), metav1.NewTime(micro(1).Time)
		}, 62},
		"repeated": {func(e *eventsv1.Event) {
			e.EventTime, e.Series = micro(2), &eventsv1.EventSeries{LastObservedTime: micro(30)}
		}, 90},
		"repeated without a time":      {func(e *eventsv1.Event) { e.EventTime, e.Series = micro(2), &eventsv1.EventSeries{} }, 62},
		"about a Seed":                 {about("core.gardener.cloud/v1beta1", "Seed"), 60},
		"about a Shoot":                {about("core.gardener.cloud/v1beta1", "Shoot"), -1},
		"about a Shoot, older version": {about("core.gardener.cloud/v1alpha1", "Shoot"), -1},
		"about another kind of Shoot":  {about("example.org/v1", "Shoot"), 60},
		"about a ShootState":           {about("core.gardener.cloud/v1beta1", "ShootState"), 60},
		"about nothing":                {about("not/a/version", "Shoot"), 60},
	} {
		event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start)}}
		test.change(event)
		kept := &eventsv1.Event{}
		keep(kept, event)
		for _, one := range []*eventsv1.Event{event, kept} {
			at, expires := Expires(one, time.Hour)
			if expires != (test.want >= 0) || expires && !at.Equal(micro(test.want).Time) {
				t.Errorf("%s: %v, %v", name, at, expires)
			}
		}
	}
}
