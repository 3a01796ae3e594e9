package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// prepared returns a machine with the first configuration.
func prepared(t *testing.T) *machine {
	t.Helper()
	m := newMachine(t)
	m.knows(first(), second())
	if err := m.apply("1", first()); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(m.root, paths.KubeletCPUState)
	if err := os.WriteFile(state, []byte("state"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.effects = 0
	clear(m.restarts)
	return m
}

// TestChange checks the result of a change, and that only what changed is restarted.
func TestChange(t *testing.T) {
	m := prepared(t)
	if err := m.apply("2", second()); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{paths.ContainerdUnit: 1, paths.KubeletUnit: 1, "new.service": 1, "uses.service": 1, "sshd.service": 1}
	if fmt.Sprint(m.restarts) != fmt.Sprint(want) {
		t.Errorf("restarted is %v, want %v", m.restarts, want)
	}
	state := m.state()
	for name, want := range map[string]string{
		"file /etc/changed": "-rw------- 2", "file /opt/bin/kubelet": "-rwxr-xr-x kubelet 2", "file " + paths.Agent: "-rwxr-xr-x agent 2",
		"running uses.service": "uses2", "running sshd.service": "A", "running " + paths.KubeletUnit: "kubeletkubelet 2cpuManagerPolicy: static",
		"running gone.service": "", "enabled gone.service": "", "enabled new.service": "true", "enabled off.service": "", "enabled sshd.service": "",
		"file /etc/gone": "", "file " + paths.Previous: "", "file " + paths.Pending: "", "file " + paths.KubeletCPUState: "",
		"file /etc/containerd/certs.d/gone.io/hosts.toml": "", "file /etc/systemd/system/gone.service": "",
	} {
		if state[name] != want {
			t.Errorf("%s is %q, want %q", name, state[name], want)
		}
	}
	if key, begun, err := m.process().State(); err != nil || key != "2" || begun != "" {
		t.Errorf("applied is %q, begun is %q: %v", key, begun, err)
	}
	m.effects = 0
	clear(m.restarts)
	if err := m.apply("2 again", second()); err != nil || len(m.restarts) > 0 {
		t.Errorf("the same again restarts %v: %v", m.restarts, err)
	}
}

// TestStopped stops the process before each of its effects. The next one goes on: the end is the same, and nothing is restarted more than twice or
// without need. If another configuration is wanted by then, or the first one again, the end is that of this one.
func TestStopped(t *testing.T) {
	ends := map[string]map[string]string{}
	configs := map[string]func() *osc.Config{"1": first, "2": second}
	var total int
	for key, config := range configs {
		m := prepared(t)
		if err := m.apply("2", second()); err != nil {
			t.Fatal(err)
		}
		total = m.effects
		if err := m.apply(key, config()); err != nil {
			t.Fatal(err)
		}
		ends[key] = m.state()
	}
	if total < 50 {
		t.Fatalf("there are only %d effects", total)
	}
	for stop := range total {
		for key, config := range configs {
			if key == "1" && stop%3 > 0 {
				continue // a sample is enough
			}
			m := prepared(t)
			m.stopAt = stop
			if err := m.apply("2", second()); !errors.Is(err, errStopped) {
				t.Fatalf("stop %d: %v", stop, err)
			}
			m.stopAt = -1
			if err := m.apply(key, config()); err != nil {
				t.Fatalf("stop %d, then %s: %v", stop, key, err)
			}
			got := m.state()
			if key == "1" { // of these, the first configuration says nothing
				delete(got, "file "+paths.KubeletCPUState)
				delete(ends[key], "file "+paths.KubeletCPUState)
			}
			if diff := differences(got, ends[key]); diff != "" {
				t.Fatalf("stop %d, then %s:\n%s", stop, key, diff)
			}
			for unit, count := range m.restarts {
				if count > 2 || unit == "same.service" {
					t.Errorf("stop %d, then %s: %s was restarted %d times", stop, key, unit, count)
				}
			}
		}
	}
}

// TestFullDisk checks that no file is half-written on a full disk, and that the next pass goes on.
func TestFullDisk(t *testing.T) {
	m := prepared(t)
	writes := 0
	m.fail = func(change, path string) error {
		if writes++; change == "write" && writes > 10 {
			return &os.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
		}
		return nil
	}
	err := m.apply("2", second())
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("got %v", err)
	}
	if len(m.restarts) > 0 {
		t.Errorf("restarted %v with half of the files", m.restarts)
	}
	for name := range m.state() {
		if strings.Contains(name, "incomplete") {
			t.Errorf("%s is left", name)
		}
	}
	m.fail = nil
	if err := m.apply("2", second()); err != nil {
		t.Fatal(err)
	}
}

// TestFailures checks that a failure is reported and the rest is done, and that the next pass repeats only what failed.
func TestFailures(t *testing.T) {
	m := prepared(t)
	m.refuses["uses.service"] = true
	err := m.apply("2", second())
	if err == nil || !strings.Contains(err.Error(), `restart uses.service: systemd reports "failed"`) {
		t.Fatalf("got %v", err)
	}
	if m.restarts[paths.KubeletUnit] != 1 || m.restarts["new.service"] != 1 {
		t.Errorf("others were not restarted: %v", m.restarts)
	}
	if key, begun, err := m.process().State(); err != nil || key != "1" || begun != "2" {
		t.Errorf("applied is %q, begun is %q: %v", key, begun, err)
	}
	if last, err := m.process().Last(); err != nil || last != nil {
		t.Errorf("the last configuration is %v: %v", last, err)
	}
	m.refuses["uses.service"] = false
	clear(m.restarts)
	if err := m.apply("2", second()); err != nil || fmt.Sprint(m.restarts) != "map[uses.service:1]" {
		t.Errorf("restarted %v: %v", m.restarts, err)
	}
}

// TestBadAgent checks that a node agent that does not pass its check replaces nothing.
func TestBadAgent(t *testing.T) {
	m := prepared(t)
	process := m.process()
	checked := ""
	process.Check = func(_ context.Context, program string) error {
		content, err := os.ReadFile(program)
		checked = string(content)
		return errors.Join(err, errors.New("it does not read its configuration"))
	}
	err := process.Apply(t.Context(), "2", second())
	if err == nil || !strings.Contains(err.Error(), "does not pass its check, and the old one stays") || checked != "agent 2" {
		t.Errorf("checked %q, got %v", checked, err)
	}
	if got := m.state()["file "+paths.Agent]; got != "-rwxr-xr-x agent 1" {
		t.Errorf("the node agent is %q", got)
	}
}

// TestRefused checks that a program that systemd replaced by its predecessor is not installed again, and that another one is.
func TestRefused(t *testing.T) {
	m := prepared(t)
	refused := filepath.Join(m.root, paths.Refused)
	if err := os.WriteFile(refused, []byte("agent 2"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := m.process().Apply(t.Context(), "2", second())
	if err == nil || !strings.Contains(err.Error(), "ended repeatedly") || m.state()["file "+paths.Agent] != "-rwxr-xr-x agent 1" {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(refused, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.apply("2", second()); err != nil {
		t.Error(err)
	}
}

// TestPrevious checks that the program that worked is kept until its successor has applied the configuration.
func TestPrevious(t *testing.T) {
	m := prepared(t)
	if err := m.process().Apply(t.Context(), "2", second()); !errors.Is(err, ErrRestart) {
		t.Fatalf("got %v", err)
	}
	if got := m.state(); got["file "+paths.Previous] != "-rwxr-xr-x agent 1" || got["file "+paths.Agent] != "-rwxr-xr-x agent 2" || len(m.restarts) > 0 {
		t.Errorf("got %v, restarted %v", got, m.restarts)
	}
}

// TestProbe checks that a registry whose host does not answer does not keep units from their restart.
func TestProbe(t *testing.T) {
	m := prepared(t)
	if err := m.process().Apply(t.Context(), "2", second()); !errors.Is(err, ErrRestart) {
		t.Fatal(err)
	}
	process := m.process()
	process.Probe = func(context.Context, string) error { return errors.New("connection refused") }
	err := process.Apply(t.Context(), "2", second())
	if err == nil || !strings.Contains(err.Error(), "https://cache.example.com does not answer yet") || m.restarts[paths.KubeletUnit] != 1 {
		t.Errorf("got %v, restarted %v", err, m.restarts)
	}
	if err := m.apply("2", second()); err != nil || m.restarts[paths.KubeletUnit] != 1 {
		t.Errorf("got %v, restarted %v", err, m.restarts)
	}
}
