package integration

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// checkedFleet is a set of ManagedResources that each have a ConfigMap and a check of it.
type checkedFleet struct {
	*fixture
	view *live.View
}

func newCheckedFleet(t *testing.T) *checkedFleet {
	t.Helper()
	f := newFixture(t)
	config := rest.CopyConfig(shared.Get(t).Config())
	config.Wrap(f.requests.wrap)
	config.QPS = -1
	httpClient, err := rest.HTTPClientFor(config)
	must(t, err)
	objects, err := target.NewObjects(config, httpClient)
	must(t, err)
	view := live.NewView(live.Options{
		Objects: objects, Policy: fieldowner.DefaultPolicy(), Examiner: health.NewExaminer("", nil), ManagedBy: f.namespace, Clock: clock.RealClock{},
	})
	go func() { _ = view.Start(f.ctx) }()
	fleet := &checkedFleet{f, view}
	fleet.eventually("the view has started", func() bool {
		view.Use(types.NamespacedName{Name: "test"}, []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}})
		return view.Shows(schema.GroupKind{Kind: "ConfigMap"})
	})
	return fleet
}

// create creates the ConfigMap of a ManagedResource.
func (c *checkedFleet) create(number int) {
	c.Helper()
	must(c, c.client.Create(c.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.namespace, Name: fmt.Sprint("object", number),
		Labels:      map[string]string{resourcesv1alpha1.LabelManagedBy: c.namespace},
		Annotations: map[string]string{resourcesv1alpha1.AnnotationOrigin: fmt.Sprintf("garden/mr%d", number)},
	}}))
}

// checks returns the checks of a ManagedResource. Their result is the given text.
func (c *checkedFleet) checks(number int, generation int64, text string) live.Checks {
	return live.Checks{
		Origin: fmt.Sprintf("garden/mr%d", number), UID: "1", Generation: generation,
		Written: []resourcesv1alpha1.HealthCheck{{Kind: "ConfigMap", Healthy: "false", Message: fmt.Sprintf("%q", text)}},
	}
}

// wantVerdict waits until the view shows the object. At that moment, the verdict must already be the text.
func (c *checkedFleet) wantVerdict(number int, text string) {
	c.Helper()
	ref := object.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: c.namespace, Name: fmt.Sprint("object", number)}
	var state live.State
	c.eventually("the object is shown", func() bool {
		state = c.view.Read(c.ctx, []object.Ref{ref})[ref.Key()]
		return state.Presence == live.Present
	})
	if observation := state.Observation; !observation.Examined || observation.Health == nil || !strings.Contains(observation.Health.Unhealthy, text) {
		c.Errorf("object %d: examined %t, %+v; want %q", number, observation.Examined, observation.Health, text)
	}
}

// sent returns the number of lists and watches of ConfigMaps, and of reads of single ConfigMaps, since the last call.
func (c *checkedFleet) sent() (watches, reads int) {
	c.requests.mu.Lock()
	defer c.requests.mu.Unlock()
	for _, line := range c.requests.lines {
		switch {
		case line == "GET /api/v1/configmaps":
			watches++
		case strings.HasPrefix(line, "GET /api/v1/namespaces/") && strings.Contains(line, "/configmaps/object"):
			reads++
		}
	}
	c.requests.lines = nil
	return watches, reads
}

// TestChecksOfAFleet: if ManagedResources have their own checks, the view lists the kind once, not once per
// ManagedResource, whether the checks are equal or not. If checks change, it reads only the objects of their
// ManagedResource.
func TestChecksOfAFleet(t *testing.T) {
	t.Parallel()
	const fleet = 50
	for name, text := range map[string]func(number int) string{
		"the same checks": func(int) string { return "all" },
		"other checks":    func(number int) string { return fmt.Sprintf("only %d.", number) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCheckedFleet(t)
			c.create(0)
			c.sent()
			for number := range fleet {
				c.view.AdoptChecks(c.ctx, c.checks(number, 1, text(number)))
				if number > 0 {
					c.create(number)
				}
				c.wantVerdict(number, text(number))
			}
			watches, reads := c.sent()
			t.Logf("%d ManagedResources are created: %d lists and watches, %d reads", fleet, watches, reads)
			if watches > 2 || reads > 0 {
				t.Errorf("%d lists and watches, %d reads; want one that reads whole objects", watches, reads)
			}

			for number := range fleet {
				c.view.AdoptChecks(c.ctx, c.checks(number, 2, "changed"))
				c.wantVerdict(number, "changed")
			}
			watches, reads = c.sent()
			t.Logf("%d ManagedResources get other checks: %d lists and watches, %d reads", fleet, watches, reads)
			if watches > 0 || reads != fleet {
				t.Errorf("%d lists and watches, %d reads; want one read of each object", watches, reads)
			}
		})
	}
}

// TestChecksThatCannotBeRenewed: if an object cannot be read after its check changed, a new watch of its kind is
// started.
func TestChecksThatCannotBeRenewed(t *testing.T) {
	t.Parallel()
	c := newCheckedFleet(t)
	c.view.AdoptChecks(c.ctx, c.checks(0, 1, "first"))
	c.create(0)
	c.wantVerdict(0, "first")
	c.requests.breakWith(func(request *http.Request) error {
		if strings.HasSuffix(request.URL.Path, "/configmaps/object0") {
			return errors.New("connection refused")
		}
		return nil
	})
	c.view.AdoptChecks(c.ctx, c.checks(0, 2, "second"))
	c.requests.breakWith(nil)
	c.wantVerdict(0, "second")
	if watches, _ := c.sent(); watches == 0 {
		t.Error("the kind was not watched again")
	}
}

// TestChecksChangeWhileObjectsDo: in whatever order objects and checks change, each object is finally examined by its
// last check.
func TestChecksChangeWhileObjectsDo(t *testing.T) {
	t.Parallel()
	c := newCheckedFleet(t)
	const fleet, rounds = 5, 20
	for number := range fleet {
		c.create(number)
	}
	objects := make(chan error, fleet)
	for number := range fleet {
		go func() {
			var err error
			for round := range rounds {
				configMap := &corev1.ConfigMap{}
				if err = c.client.Get(c.ctx, types.NamespacedName{Namespace: c.namespace, Name: fmt.Sprint("object", number)}, configMap); err != nil {
					break
				}
				configMap.Data = map[string]string{"round": fmt.Sprint(round)}
				if err = c.client.Update(c.ctx, configMap); err != nil {
					break
				}
			}
			objects <- err
		}()
	}
	for round := range rounds {
		for number := range fleet {
			c.view.AdoptChecks(c.ctx, c.checks(number, int64(round), fmt.Sprintf("round %d.", round)))
		}
	}
	for range fleet {
		must(t, <-objects)
	}
	for number := range fleet {
		ref := object.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: c.namespace, Name: fmt.Sprint("object", number)}
		c.eventually(fmt.Sprintf("object %d is examined by its last check", number), func() bool {
			observation := c.view.Read(c.ctx, []object.Ref{ref})[ref.Key()].Observation
			return observation.Examined && observation.Health != nil && strings.Contains(observation.Health.Unhealthy, fmt.Sprintf("round %d.", rounds-1))
		})
	}
}
