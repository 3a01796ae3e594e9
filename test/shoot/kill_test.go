package shoot

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

var everyKill = flag.Bool("shoot.kills", false, "kill gardenlet at each of its writes, before and after the API server executes it, instead of only at some writes")

// moment is the time at which gardenlet is killed.
type moment int

const (
	never moment = iota
	// Before the API server receives a write, and after it has executed the write but before gardenlet receives the response.
	before
	after
)

// atEachWrite kills gardenlet at each write. A write that was not executed is sent again after the restart and succeeds.
var atEachWrite = map[string]func(int) moment{
	"before each write":       func(attempt int) moment { return []moment{never, before}[attempt%2] },
	"after each second write": func(attempt int) moment { return []moment{never, after}[attempt%2] },
}

// TestKilled runs Shoots through life cycles in which gardenlet is killed at its writes and started again: while the
// Shoot is created, while one of its dependencies fails, while it is deleted and, if gardenlet is killed at each write,
// while it hibernates and wakes up. No ManagedResource refers to a Secret that does not exist, no key is generated twice,
// and nothing is left.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	w.line = &line{}
	kit.StartManager(t, w.managerOfSeed(), nil, seedManager)
	w.etcdOperator()
	count := 0
	lives := map[string]func(int) moment{"at some writes": func(int) moment {
		count++
		return map[int]moment{0: before, 6: after}[count%12]
	}}
	if *everyKill {
		lives = atEachWrite
	}
	for name, decide := range lives {
		t.Run(name, func(t *testing.T) {
			of := w.T
			w.T = t
			defer func() { w.T = of }()
			w.killedLife(decide)
		})
	}
}

// killedLife is the life cycle of a Shoot.
func (w *world) killedLife(decide func(attempt int) moment) {
	w.Helper()
	m := &mortal{world: w, decide: decide, attempts: map[string]int{}}
	stop := m.run()
	defer stop()
	w.declare()
	server := w.startServer()
	manager := w.startManager()
	w.eventually(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded, "finished")
	w.secretsExist()
	w.generatedOnce()
	atCreation := m.killed()
	w.tolerate(m)
	if *everyKill {
		server, manager = w.hibernate(manager.Stop, func() { kit.Must(w, server.Stop(0)) })
		w.secretsExist()
		w.generatedOnce()
	}
	before := m.killed()
	w.deletion()
	w.Logf("gardenlet was killed %d times while the Shoot was created, %d times between creation and deletion, and %d times while it was deleted",
		atCreation, before-atCreation, m.killed()-before)
	if atCreation == 0 || m.killed() == before {
		w.Error("gardenlet was not killed")
	}
	manager.Stop()
	kit.Must(w, server.Stop(0))
}

// mortal runs a gardenlet that is killed at its writes and started again.
type mortal struct {
	*world
	// decide returns when gardenlet is killed at the nth attempt of a write.
	decide func(attempt int) moment

	mu       sync.Mutex
	attempts map[string]int
	kills    int
	// spared keeps gardenlet alive regardless of decide. die stops the running gardenlet.
	spared bool
	die    func()
}

// spare keeps gardenlet alive from now on, or kills it at its writes again.
func (m *mortal) spare(spared bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spared = spared
}

// kill kills gardenlet now.
func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kills++
	m.die()
}

func (m *mortal) killed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kills
}

// errKilled is the result of all requests of a killed gardenlet.
var errKilled = errors.New("gardenlet was killed")

// run runs one gardenlet after another until the returned function is called.
func (m *mortal) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			m.live(ctx)
		}
	}()
	return sync.OnceFunc(func() { cancel(); <-ended })
}

// live runs a gardenlet until it is killed.
func (m *mortal) live(ctx context.Context) {
	ctx, die := context.WithCancel(ctx)
	defer die()
	m.mu.Lock()
	m.die = die
	m.mu.Unlock()
	through := m.transport(ctx, die)
	mgr, err := m.newGardenlet(through, through)
	if err == nil {
		_ = mgr.Start(ctx) // the error of a killed gardenlet does not matter
		return
	}
	select { // simulates the restart of the container
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
}

// transport sends the requests of a gardenlet that is alive. It serializes writes.
func (m *mortal) transport(alive context.Context, die func()) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if alive.Err() != nil {
				return nil, errKilled
			}
			if request.Method == http.MethodGet {
				return next.RoundTrip(request)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if alive.Err() != nil {
				return nil, errKilled
			}
			write := request.Method + " " + request.URL.Path
			m.attempts[write]++
			moment := m.decide(m.attempts[write])
			if moment == never || m.spared {
				return next.RoundTrip(request)
			}
			if moment == after {
				if response, err := next.RoundTrip(request); err == nil {
					_ = response.Body.Close()
				}
			}
			m.kills++
			die()
			return nil, errKilled
		})
	}
}

// secretsExist checks that no ManagedResource refers to a Secret that does not exist.
func (w *world) secretsExist() {
	w.Helper()
	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(w, w.seed.List(w.Context(), &list))
	for _, mr := range list.Items {
		for _, reference := range mr.Spec.SecretRefs {
			if err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: mr.Namespace, Name: reference.Name}, &corev1.Secret{}); err != nil {
				w.Errorf("ManagedResource %s: %v", mr.Name, err)
			}
		}
	}
}

// generatedOnce checks that each name that the secrets manager manages has one Secret.
func (w *world) generatedOnce() {
	w.Helper()
	var list corev1.SecretList
	kit.Must(w, w.seed.List(w.Context(), &list, client.InNamespace(technical), client.HasLabels{constants.LabelSecretsManagerName}))
	names := map[string][]string{}
	for _, secret := range list.Items {
		name := secret.Labels[constants.LabelSecretsManagerName] + " " + secret.Labels[constants.LabelSecretsManagerBundleFor]
		names[name] = append(names[name], secret.Name)
	}
	for name, of := range names {
		if len(of) > 1 {
			w.Errorf("%s was generated %d times: %s", name, len(of), strings.Join(slices.Sorted(slices.Values(of)), ", "))
		}
	}
	if len(names) < 10 {
		w.Error(fmt.Errorf("found only %d Secrets of the secrets manager", len(names)))
	}
}
