package flow

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sites "github.com/trellis-k8s/trellis/examples/flow/sites/app"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

var everyKill = flag.Bool("flow.kills", false, "kill the flow at each of its writes instead of only at some")

// TestKilled kills the process of the flow with SIGKILL at its writes, before and after the API server has executed
// them, and starts it again. No object is lost, and the final state is the same as without kills.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.cp.Kubeconfig(), nil, "")
	program := build[sites.Program](t)
	undisturbed := newLife(t, w, program, 0, false)
	undisturbed.lead()
	count := undisturbed.writes
	t.Logf("the life of a site takes %d writes", count)
	at := []int{2, 3, 4, count / 2, count - 2}
	if *everyKill {
		at = at[:0]
		for i := range count {
			at = append(at, i+1)
		}
	}
	for _, number := range at {
		for _, carriedOut := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d carried out %t", number, carriedOut), func(t *testing.T) {
				if *everyKill {
					t.Parallel()
				}
				newLife(t, w, program, number, carriedOut).lead()
			})
		}
	}
}

// build builds a program of this repository, and returns its path.
func build[App any](t *testing.T) string {
	t.Helper()
	path, err := controlplane.BuildProgram[App]()
	kit.Must(t, err)
	return path
}

// life is the life of a site whose flow is killed at one of its writes.
type life struct {
	*world
	program, kubeconfig string
	killAt              int
	carriedOut          bool

	mu      sync.Mutex
	writes  int
	killed  bool
	process *exec.Cmd
}

func newLife(t *testing.T, of *world, program string, killAt int, carriedOut bool) *life {
	t.Helper()
	l := &life{world: &world{T: t, cp: of.cp, client: of.client, scheme: of.scheme}, program: program, killAt: killAt, carriedOut: carriedOut}
	l.namespace = kit.NewNamespace(t, l.client, "killed", nil)
	var disconnect func()
	l.kubeconfig, disconnect = kit.Proxy(t, l.cp.Config(), l.send)
	l.start()
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		_ = l.process.Process.Kill()
		disconnect()
	})
	return l
}

// start starts the process. The caller holds the lock, or no other goroutine runs yet.
func (l *life) start() {
	l.process = exec.CommandContext(l.Context(), l.program, "--kubeconfig", l.kubeconfig, "--namespace", l.namespace, "--version", "v1")
	if err := l.process.Start(); err != nil {
		l.Error(err)
		return
	}
	go func(process *exec.Cmd) { _ = process.Wait() }(l.process)
}

// send forwards a request of the process. At the chosen write, it kills the process.
func (l *life) send(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		return next.RoundTrip(request)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if l.killed || l.writes != l.killAt {
		return next.RoundTrip(request)
	}
	l.killed = true
	if l.carriedOut {
		response, err := next.RoundTrip(request.WithContext(l.Context()))
		if err != nil {
			return nil, err
		}
		_ = response.Body.Close()
	}
	_ = l.process.Process.Kill()
	l.start()
	return nil, fmt.Errorf("the process was killed")
}

// lead goes through the life cycle of a site: the site is created, changed, loses an app, and is deleted.
func (l *life) lead() {
	l.Helper()
	l.declare(map[string]string{"type": "local", "region": "here", "zones": "a", "message": "one", "apps": "2"})
	l.reach("one", "a", 4)
	l.change(map[string]string{"type": "local", "region": "here", "zones": "b", "message": "two", "apps": "2"})
	l.reach("two", "b", 4)
	l.change(map[string]string{"type": "local", "region": "here", "zones": "b", "message": "two", "apps": "1"})
	l.reach("two", "b", 3)
	kit.Must(l, l.client.Delete(l.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "site"}}))
	kit.Eventually(l, "the site and all its objects are deleted", func() string {
		if l.get(&corev1.ConfigMap{}, "site") {
			return l.reported()
		}
		return ""
	})
	if left := l.bundles(); len(left) > 0 {
		l.Errorf("the site is deleted, but left %v", left)
	}
	if l.network() != nil {
		l.Error("the site is deleted, but its network is not")
	}
	if l.mu.Lock(); l.killAt > 0 && !l.killed {
		l.Logf("the life took %d writes: write %d did not occur", l.writes, l.killAt)
	}
	l.mu.Unlock()
}

// reach waits until a site is as declared. Meanwhile it checks the invariant: no emitted bundle is missing, and each
// has its Secrets.
func (l *life) reach(message, zones string, bundles int) {
	l.Helper()
	var emitted []string
	kit.Eventually(l, fmt.Sprintf("the site has %s and %d bundles", message, bundles), func() string {
		l.answerIfStale(zones)
		now := l.bundles()
		for _, name := range emitted {
			if !slices.Contains(now, name) && name != "site-app-2" {
				l.Fatalf("%s was emitted, but was deleted without a tombstone", name)
			}
		}
		emitted = now
		var app corev1.ConfigMap
		switch report := l.reported(); {
		case len(now) != bundles:
			return fmt.Sprintf("bundles %v; %s", now, report)
		case !l.get(&app, "site-app") || app.Data["message"] != message:
			return fmt.Sprintf("the data of the app is %v; %s", app.Data, report)
		case !l.succeeded(report):
			return report
		}
		return ""
	})
}

func (l *life) succeeded(text string) bool {
	var report flow.Report
	return json.Unmarshal([]byte(text), &report) == nil && report.LastOperation.State == "Succeeded"
}

// bundles returns the names of the ManagedResources. Each must have its Secrets.
func (l *life) bundles() []string {
	l.Helper()
	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(l, l.client.List(l.Context(), &list, client.InNamespace(l.namespace)))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
		for _, reference := range list.Items[i].Spec.SecretRefs {
			if !l.get(&corev1.Secret{}, reference.Name) {
				l.Fatalf("%s names the Secret %s, which does not exist", list.Items[i].Name, reference.Name)
			}
		}
	}
	return names
}

// answerIfStale responds like the extension if its last response is outdated.
func (l *life) answerIfStale(zones string) {
	network := l.network()
	if network == nil {
		return
	}
	observed, _, _ := unstructured.NestedInt64(network.Object, "status", "observedGeneration")
	wanted, _, _ := unstructured.NestedString(network.Object, "spec", "providerConfig", "zones")
	if observed != network.GetGeneration() && wanted == zones {
		l.answer("10.0.0.0/16", "zone "+zones)
	}
}
