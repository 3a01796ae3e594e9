package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/nodeagent/v1alpha1"
	componentnodeagent "github.com/trellis-k8s/trellis/pkg/component/nodeagent"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/agent"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/apply"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/config"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
	"github.com/trellis-k8s/trellis/test/kit"
)

var errKilled = errors.New("the process was killed")

// machine is a machine in a directory, with the node agent and a simulated systemd.
type machine struct {
	*testing.T
	admin      client.Client
	name, pool string
	// tokenID identifies the bootstrap token.
	tokenID  string
	root     string
	clock    clock.WithTicker
	requests *kit.Requests
	log      logr.Logger
	// kubelet is the URL of the health of kubelet.
	kubelet string

	mu sync.Mutex
	// restarts counts starts of units, enabled has those that start with the machine, active those that run.
	restarts        map[string]int
	enabled, active map[string]bool
	refuses         map[string]bool
	// silent is set if containerd does not answer.
	silent bool
	images map[string]string
	// commands are further programs of the machine, and onStart what its units do when they start.
	commands map[string]func() error
	onStart  map[string]func()
	// wantedSystem is the version of the operating system to which a test updates it.
	wantedSystem string
	// effects counts changes. The one with the number killAt, and all behind it, are not made.
	effects, killAt int
	starts          int
}

// machines counts machines.
var machines atomic.Int32

// newMachine returns a new machine as user data leaves it. Its name begins with a prefix, and is that of the Node and of its pool.
func newMachine(t *testing.T, prefix string) *machine {
	t.Helper()
	number := machines.Add(1)
	name := fmt.Sprintf("%s-%d", prefix, number)
	m := &machine{
		T: t, admin: prepare(t), name: name, pool: "gardener-node-agent-" + name, root: t.TempDir(), clock: clock.RealClock{}, requests: &kit.Requests{}, log: logr.Discard(),
		restarts: map[string]int{}, enabled: map[string]bool{}, active: map[string]bool{}, refuses: map[string]bool{}, images: map[string]string{}, killAt: -1,
	}
	id := fmt.Sprintf("to%04d", number)
	m.tokenID = id
	kit.Must(t, m.admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"},
	}))
	m.write(paths.BootstrapToken, id+".0123456789abcdef\n")
	m.write(paths.MachineName, name+"\n")
	m.write(paths.Zone, "zone-a\n")
	m.write(paths.ClusterCA, string(plane.Config().CAData))
	m.configure(nil)
	return m
}

// fakeClock gives the machine a time that only tick and the test advance.
func (m *machine) fakeClock() *clocktesting.FakeClock {
	fake := clocktesting.NewFakeClock(time.Now())
	m.clock = fake
	return fake
}

// tick advances the time of a machine with an own clock by a second.
func (m *machine) tick() { m.pass(time.Second) }

// pass advances the time of a machine with an own clock.
func (m *machine) pass(duration time.Duration) {
	if fake, is := m.clock.(*clocktesting.FakeClock); is {
		fake.Step(duration)
	}
}

// configure writes the configuration of the node agent as gardenlet renders it.
func (m *machine) configure(change func(*v1alpha1.NodeAgentConfiguration)) {
	m.Helper()
	text, err := componentnodeagent.Configuration(componentnodeagent.Values{
		Server: plane.Config().Host, SecretName: m.pool, KubernetesVersion: "1.37.1",
	})
	kit.Must(m, err)
	if change != nil {
		parsed, err := config.Parse([]byte(text))
		kit.Must(m, err)
		change(parsed)
		text = string(encode(m.T, parsed))
	}
	m.write(paths.Base+"/config.yaml", text)
}

func (m *machine) write(path, content string) {
	m.Helper()
	kit.Must(m, host.Files{Root: m.root, NoSync: true}.Write(path, []byte(content), 0o600))
}

// read returns the content of a file, empty if there is none.
func (m *machine) read(path string) string {
	content, err := os.ReadFile(filepath.Join(m.root, path))
	if err != nil {
		return ""
	}
	return string(content)
}

func (m *machine) exists(path string) bool {
	_, err := os.Stat(filepath.Join(m.root, path))
	return err == nil
}

// before counts an effect.
func (m *machine) before(string, string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.effects++
	if m.killAt >= 0 && m.effects > m.killAt {
		return errKilled
	}
	return nil
}

// options returns what a process of the node agent gets.
func (m *machine) options() agent.Options {
	return agent.Options{
		Load: func() (*v1alpha1.NodeAgentConfiguration, error) {
			return config.Load(filepath.Join(m.root, paths.Base, "config.yaml"))
		},
		Files: host.Files{Root: m.root, Before: m.before, NoSync: true}, Systemd: m, Images: m, Commands: m,
		Hostname:      func() (string, error) { return strings.ToUpper(m.name), nil },
		Check:         func(context.Context, string) error { return nil },
		KubeletHealth: m.kubelet, Clock: m.clock, Log: m.log, Metrics: agent.NewMetrics(prometheus.NewRegistry()), Wrap: m.requests.Wrap,
	}
}

// start runs the node agent as systemd does, until the returned function is called or the test ends.
func (m *machine) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			m.mu.Lock()
			m.starts++
			m.mu.Unlock()
			if err := agent.Run(ctx, m.options()); err != nil && !errors.Is(err, apply.ErrRestart) {
				m.Errorf("the node agent ended with: %v", err)
				return
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	m.Cleanup(stop)
	return stop
}

// Run implements host.Commands.
func (m *machine) Run(_ context.Context, name string, _ ...string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case name == "containerd":
		return []byte("version = 3\n"), nil
	case name == "ctr" && !m.silent:
		return nil, nil
	case m.commands[name] != nil:
		return nil, m.commands[name]()
	}
	return nil, fmt.Errorf("%s does not work", name)
}

// Open implements host.Images.
func (m *machine) Open(_ context.Context, image, path string, read func(io.Reader) error) error {
	m.mu.Lock()
	content, found := m.images[image+path]
	m.mu.Unlock()
	if !found {
		return fmt.Errorf("image %s: not found", image)
	}
	return read(strings.NewReader(content))
}

func (m *machine) unit(change, unit string, do func()) error {
	if err := m.before(change, unit); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
	return nil
}

// The methods of host.Systemd.

func (m *machine) Reload(context.Context) error { return m.before("reload", "") }
func (m *machine) Enable(_ context.Context, unit string) error {
	return m.unit("enable", unit, func() { m.enabled[unit] = true })
}

func (m *machine) Disable(_ context.Context, unit string) error {
	return m.unit("disable", unit, func() { delete(m.enabled, unit) })
}

func (m *machine) Stop(_ context.Context, unit string) error {
	return m.unit("stop", unit, func() { delete(m.active, unit) })
}
func (m *machine) Start(ctx context.Context, unit string) error { return m.Restart(ctx, unit) }
func (m *machine) Restart(_ context.Context, unit string) error {
	refused := false
	err := m.unit("restart", unit, func() {
		if refused = m.refuses[unit]; !refused {
			m.restarts[unit]++
			m.active[unit] = true
		}
	})
	if m.onStart[unit] != nil && !refused {
		m.onStart[unit]()
	}
	if refused {
		return fmt.Errorf(`restart %s: systemd reports "failed"`, unit)
	}
	return err
}

func (m *machine) States(_ context.Context, units []string) ([]host.UnitState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	states := make([]host.UnitState, len(units))
	for i, unit := range units {
		states[i] = host.UnitState{Name: unit, Load: "loaded", Active: "inactive", Sub: "dead", Enabled: "disabled"}
		if m.active[unit] {
			states[i].Active, states[i].Sub = "active", "running"
		}
		if m.refuses[unit] {
			states[i].Active = "failed"
		}
		if m.enabled[unit] {
			states[i].Enabled = "enabled"
		}
	}
	return states, nil
}

// count returns how often a unit was started.
func (m *machine) count(unit string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.restarts[unit]
}

// refuse makes a unit fail, or work again.
func (m *machine) refuse(unit string, refuses bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuses[unit] = refuses
}
