package seed

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardenlet "github.com/trellis-k8s/trellis/cmd/gardenlet/app"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/audit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
)

var restFor = flag.Duration("seed.rest", 0, "how long TestProgram observes a gardenlet at rest; at least until it has renewed its lease three times")

// program is the gardenlet binary, between a garden and a seed, with the rights that its chart grants. Its requests
// pass through proxies, which record them and can kill the process.
type program struct {
	*world
	name, path, config, health string
	toGarden, toSeed           *kit.Requests

	mu      sync.Mutex
	process *exec.Cmd
	ended   chan struct{}
	// kill decides when the process is killed. nil means never.
	kill func(write string, attempt int) moment
	// attempts are the number of attempts of each write. writes is the number of all writes, and kills the number of
	// writes that ended the process.
	attempts      map[string]int
	writes, kills int
	// deleted is set before the Seed is deleted.
	deleted bool
}

// moment is the moment of a kill, relative to a write.
type moment int

const (
	never moment = iota
	before
	after
)

func newProgram(t *testing.T, name string) *program {
	t.Helper()
	p := &program{world: newWorld(t), name: name, path: build[gardenlet.Program](t), toGarden: &kit.Requests{}, toSeed: &kit.Requests{}}
	for _, namespace := range []string{"gardener-system-public", "gardener-system-seed-lease"} {
		p.create(p.garden, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	p.create(p.garden, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "backup"}, Data: map[string][]byte{"user": []byte("given")}})
	charts.Apply(t, p.garden, "gardenlet", map[string]any{"mode": "garden", "seeds": []any{map[string]any{"name": name}}}, func(*unstructured.Unstructured) bool { return true })
	fleet.GrantRights(t, p.gardens.Config(), p.garden)
	p.register(name)
	p.extensions()
	garden := p.proxy(p.gardens.Config(), p.gardenUser(), []string{"gardener.cloud:system:seeds", "system:authenticated"}, p.toGarden)
	seed := p.proxy(p.seeds.Config(), seedUser, seedGroups, p.toSeed)
	p.configure(garden, seed)
	return p
}

func (p *program) gardenUser() string { return "gardener.cloud:system:seed:" + p.name }

// build builds a program of this repository, and returns its path.
func build[App any](t *testing.T) string {
	t.Helper()
	path, err := controlplane.BuildProgram[App]()
	kit.Must(t, err)
	return path
}

// configure writes the configuration file with the example Seed. The test's cluster has different networks than the
// example.
func (p *program) configure(garden, seed string) {
	p.Helper()
	example := p.example(p.name)
	networks := example.Spec.Networks
	p.create(p.seed, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: constants.ShootInfoName},
		Data:       map[string]string{"podNetwork": networks.Pods, "serviceNetwork": networks.Services, "nodeNetwork": ptr.Deref(networks.Nodes, "")},
	})
	health, metrics := kit.FreePort(p), kit.FreePort(p)
	p.health = fmt.Sprintf("http://127.0.0.1:%d", health)
	content, err := yaml.Marshal(map[string]any{
		"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
		"gardenClientConnection": map[string]any{"kubeconfig": garden}, "seedClientConnection": map[string]any{"kubeconfig": seed},
		"leaderElection": map[string]any{"leaderElect": false}, // the lease of a killed leader lasts for a while
		"server": map[string]any{
			"healthProbes": map[string]any{"bindAddress": "127.0.0.1", "port": health}, "metrics": map[string]any{"bindAddress": "127.0.0.1", "port": metrics},
		},
		"seedConfig": map[string]any{"metadata": map[string]any{"name": p.name, "labels": example.Labels}, "spec": example.Spec},
	})
	kit.Must(p, err)
	p.config = filepath.Join(p.TempDir(), "gardenlet.yaml")
	kit.Must(p, os.WriteFile(p.config, content, 0o600))
}

// proxy returns the path of a kubeconfig that authenticates the process as a user.
func (p *program) proxy(config *rest.Config, user string, groups []string, requests *kit.Requests) string {
	p.Helper()
	kubeconfig, disconnect := kit.Proxy(p, config, func(next http.RoundTripper, request *http.Request) (*http.Response, error) {
		request.Header.Set("Impersonate-User", user)
		for _, group := range groups {
			request.Header.Add("Impersonate-Group", group)
		}
		next = requests.Wrap(next)
		if !isWrite(request.Method, request.URL.Path) {
			return next.RoundTrip(request)
		}
		return p.write(next, request)
	})
	p.Cleanup(func() { p.stop(); disconnect() })
	return kubeconfig
}

// isWrite reports whether a request stores something other than leases and Events.
func isWrite(method, path string) bool {
	return method != http.MethodGet && !strings.Contains(path, "/leases") && !strings.Contains(path, "/events") && !strings.HasSuffix(path, "/tokenreviews")
}

// write sends a write. If kill selects the write, it kills the process before or after that, and starts another one
// at once.
func (p *program) write(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := request.Context().Err(); err != nil {
		return nil, err // the process was killed
	}
	p.writes++
	if p.kill == nil {
		return next.RoundTrip(request)
	}
	write := request.Method + " " + request.URL.Path
	p.attempts[write]++
	moment := p.kill(write, p.attempts[write])
	if moment == never {
		return next.RoundTrip(request)
	}
	if moment == after {
		response, err := next.RoundTrip(request.WithContext(p.Context()))
		if err != nil || response.StatusCode >= http.StatusMultipleChoices {
			return response, err // nothing was written
		}
		_ = response.Body.Close()
	}
	p.kills++
	p.killProcess()
	// A gardenlet that starts without its Seed registers it again.
	if err := p.garden.Get(p.Context(), client.ObjectKey{Name: p.name}, &corev1beta1.Seed{}); !apierrors.IsNotFound(err) || !p.deleted {
		p.launch()
	}
	return nil, errors.New("the process was killed")
}

// start starts the process.
func (p *program) start(kill func(write string, attempt int) moment) {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kill, p.attempts, p.writes, p.kills, p.deleted = kill, map[string]int{}, 0, 0, false
	p.launch()
}

// launch starts a process. The caller holds the lock.
func (p *program) launch() {
	log, err := os.OpenFile(filepath.Join(p.seeds.Dir(), "gardenlet.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		p.Error(err)
		return
	}
	defer log.Close()
	process := exec.CommandContext(p.Context(), p.path, "--config", p.config)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		p.process = nil
		p.Error(err)
		return
	}
	ended := make(chan struct{})
	go func() { _ = process.Wait(); close(ended) }()
	p.process, p.ended = process, ended
}

// killProcess kills the process with SIGKILL, and waits until it has ended. The caller holds the lock.
func (p *program) killProcess() {
	if p.process == nil {
		return
	}
	_ = p.process.Process.Kill()
	<-p.ended
}

// stop kills the process.
func (p *program) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killProcess()
}

// settled waits until the Seed is ready and the current process has nothing left to write.
func (p *program) settled() {
	p.Helper()
	kit.EventuallyTrue(p, "the Seed is registered", func() bool { return p.get(p.name) != nil })
	p.eventually(p.name, corev1beta1.LastOperationStateSucceeded, "", corev1beta1.ConditionTrue)
	steady, notReady := kit.Steady(3*time.Second), 0
	kit.EventuallyWithin(p, 2*kit.WaitTimeout, "the gardenlet is ready and has nothing to write", func() string {
		p.mu.Lock()
		writes := p.writes
		p.mu.Unlock()
		if !p.ready() {
			notReady++
		}
		if !steady(writes + notReady) {
			return fmt.Sprintf("%d writes", writes)
		}
		return ""
	})
	p.eventually(p.name, corev1beta1.LastOperationStateSucceeded, "", corev1beta1.ConditionTrue)
}

// ready reports whether the process is ready.
func (p *program) ready() bool {
	request, err := http.NewRequestWithContext(p.Context(), http.MethodGet, p.health+"/readyz", http.NoBody)
	kit.Must(p, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	kit.Must(p, response.Body.Close())
	return response.StatusCode == http.StatusOK
}

// end deletes the Seed, waits until it no longer exists, and stops the process.
func (p *program) end(installation *corev1beta1.ControllerInstallation) {
	p.Helper()
	p.mu.Lock()
	p.deleted = true
	p.mu.Unlock()
	p.deleteSeed(p.name)
	kit.Must(p, p.garden.Delete(p.Context(), installation))
	p.eventuallySeedGone(p.name)
	p.stop()
	var buckets corev1beta1.BackupBucketList
	kit.Must(p, p.garden.List(p.Context(), &buckets))
	for _, bucket := range buckets.Items {
		if ptr.Deref(bucket.Spec.SeedName, "") == p.name {
			p.Errorf("BackupBucket %s still exists", bucket.Name)
		}
	}
}

// TestProgram leads the program through the life of a Seed. Its requests during creation, at rest, after a restart,
// after a change of a setting and during deletion must comply with the rule of gardenlets.
func TestProgram(t *testing.T) {
	p := newProgram(t, "program")
	kit.StartManager(t, p.seeds.Kubeconfig(), nil, "controllers: {resourceClass: seed}")
	objects := p.objects()
	_, skip := audit.Requests(t, gardens.Options.ControlPlane.AuditLog, p.gardenUser(), 0)
	installation := p.install(p.name)
	began := time.Now()
	p.start(nil)
	kit.EventuallyTrue(t, "the Seed is registered", func() bool { return p.get(p.name) != nil })
	p.eventually(p.name, corev1beta1.LastOperationStateSucceeded, "", corev1beta1.ConditionTrue)
	took := time.Since(began).Round(100 * time.Millisecond)
	p.settled()
	t.Logf("the Seed was ready within %s after %d requests to the seed, %d of them writes, and %d to the garden, %d of them writes", took,
		len(p.toSeed.Single()), len(others(p.toSeed)), len(p.toGarden.Single()), len(others(p.toGarden)))
	emitted := p.normalized()

	p.forget()
	p.rest()
	for name, requests := range map[string]*kit.Requests{"garden": p.toGarden, "seed": p.toSeed} {
		for _, request := range requests.Single() {
			if !strings.Contains(request.Path, "/leases") && request.Path != "/healthz" {
				t.Errorf("request to the %s at rest: %s", name, request)
			}
		}
		t.Logf("%s at rest: %d requests in total, %d watches opened again, and otherwise only requests for leases and /healthz in %s",
			name, len(requests.All()), len(requests.All())-len(requests.Single()), *restFor)
	}

	p.stop()
	p.forget()
	p.start(nil)
	p.settled()
	if sent := slices.Concat(others(p.toGarden), others(p.toSeed)); len(sent) > 0 {
		t.Errorf("a restart wrote %v", sent)
	}
	seed := p.get(p.name)
	kit.Change(t, p.garden, seed, func() { seed.Spec.Settings.ExcessCapacityReservation.Enabled = ptr.To(false) })
	p.settled()
	t.Logf("one setting changed: %v %v", others(p.toSeed), others(p.toGarden))

	p.forget()
	p.end(installation)
	t.Logf("deleted with %d writes to the seed and %d to the garden", len(others(p.toSeed)), len(others(p.toGarden)))
	p.same(objects)
	p.allowed(skip)
	p.killedLives(emitted, objects)
}

// rest waits until the gardenlet has renewed its lease in the garden three times, and for at least as long as the
// flag sets.
func (p *program) rest() {
	p.Helper()
	began := time.Now()
	kit.EventuallyWithin(p, kit.WaitTimeout+*restFor, "the gardenlet is at rest", func() string {
		renewed := 0
		for _, request := range p.toGarden.Single() {
			if request.Method == http.MethodPut && strings.Contains(request.Path, "/leases") {
				renewed++
			}
		}
		if rested := time.Since(began); renewed < 3 || rested < *restFor {
			return fmt.Sprintf("the lease was renewed %d times in %s", renewed, rested)
		}
		return ""
	})
}

func (p *program) forget() {
	p.toGarden.Forget()
	p.toSeed.Forget()
}

// others returns the writes except those of leases and Events.
func others(requests *kit.Requests) []string {
	return slices.DeleteFunc(writes(requests), func(sent string) bool {
		method, path, _ := strings.Cut(sent, " ")
		return !isWrite(method, path)
	})
}
