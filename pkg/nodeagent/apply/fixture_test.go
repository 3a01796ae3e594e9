package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

var errStopped = errors.New("the process was killed")

// machine is a machine with files, and a systemd that knows what its units ran with. It survives processes.
type machine struct {
	*testing.T
	mu   sync.Mutex
	root string
	// loaded is the content of unit files when systemd read them, running that when a unit started, with the files in uses.
	loaded, running map[string]string
	enabled         map[string]bool
	uses            map[string][]string
	restarts        map[string]int
	refuses         map[string]bool
	images          map[string]string
	// effects counts changes. The one with the number stopAt is not made, and none behind it. fail, if set, decides on other failures.
	effects, stopAt int
	fail            func(change, path string) error
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	return &machine{
		T: t, root: t.TempDir(), loaded: map[string]string{}, running: map[string]string{}, enabled: map[string]bool{},
		uses: map[string][]string{}, restarts: map[string]int{}, refuses: map[string]bool{}, stopAt: -1,
		images: map[string]string{"kubelet:1 /kubelet": "kubelet 1", "kubelet:2 /kubelet": "kubelet 2", "agent:1 /agent": "agent 1", "agent:2 /agent": "agent 2"},
	}
}

func (m *machine) before(change, path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.effects++
	if m.stopAt >= 0 && m.effects > m.stopAt {
		return errStopped
	}
	if m.fail != nil {
		return m.fail(change, path)
	}
	return nil
}

// process returns a new process of the node agent.
func (m *machine) process() *Applier {
	return &Applier{
		Files: host.Files{Root: m.root, Before: m.before, NoSync: true}, Systemd: m, Images: m, Commands: m,
		Secret: func(context.Context, string) (map[string][]byte, error) {
			return map[string][]byte{"key": []byte("secret")}, nil
		},
		Check: func(context.Context, string) error { return nil },
		Probe: func(context.Context, string) error { return nil },
		Log:   logr.Discard(),
	}
}

// apply runs processes until one has applied the configuration.
func (m *machine) apply(key string, config *osc.Config) error {
	for range 3 {
		if err := m.process().Apply(m.Context(), key, config); !errors.Is(err, ErrRestart) || errors.Is(err, errStopped) {
			return err
		}
	}
	return errors.New("the node agent restarts again and again")
}

func (m *machine) Run(_ context.Context, name string, _ ...string) ([]byte, error) {
	if name != "containerd" {
		return nil, fmt.Errorf("%s is not installed", name)
	}
	return []byte("version = 3\n"), nil
}

func (m *machine) Open(_ context.Context, image, path string, read func(io.Reader) error) error {
	content, found := m.images[image+" "+path]
	if !found {
		return fmt.Errorf("image %s: not found", image)
	}
	return read(strings.NewReader(content))
}

// unitFile returns the content of a unit and its drop-ins.
func (m *machine) unitFile(unit string) string {
	content, _ := os.ReadFile(filepath.Join(m.root, paths.Units, unit))
	dropIns, _ := filepath.Glob(filepath.Join(m.root, paths.Units, unit+".d", "*"))
	for _, dropIn := range dropIns {
		more, _ := os.ReadFile(dropIn)
		content = append(content, more...)
	}
	return string(content)
}

func (m *machine) Reload(context.Context) error {
	if err := m.before("reload", ""); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.loaded)
	files, _ := filepath.Glob(filepath.Join(m.root, paths.Units, "*"))
	for _, file := range files {
		unit := strings.TrimSuffix(filepath.Base(file), ".d")
		m.loaded[unit] = m.unitFile(unit)
	}
	return nil
}

func (m *machine) enable(change, unit string, enabled bool) error {
	if err := m.before(change, unit); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if delete(m.enabled, unit); enabled {
		m.enabled[unit] = true
	}
	return nil
}

func (m *machine) Enable(_ context.Context, unit string) error { return m.enable("enable", unit, true) }
func (m *machine) Disable(_ context.Context, unit string) error {
	return m.enable("disable", unit, false)
}
func (m *machine) Start(ctx context.Context, unit string) error { return m.Restart(ctx, unit) }

func (m *machine) Stop(_ context.Context, unit string) error {
	if err := m.before("stop", unit); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, unit)
	return nil
}

func (m *machine) Restart(_ context.Context, unit string) error {
	if err := m.before("restart", unit); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restarts[unit]++
	if m.refuses[unit] {
		return errors.New(`systemd reports "failed"`)
	}
	var with bytes.Buffer
	with.WriteString(m.loaded[unit])
	for _, path := range m.uses[unit] {
		content, _ := os.ReadFile(filepath.Join(m.root, path))
		with.Write(content)
	}
	m.running[unit] = with.String()
	return nil
}

func (m *machine) States(context.Context, []string) ([]host.UnitState, error) { return nil, nil }

// state returns everything that a configuration determines.
func (m *machine) state() map[string]string {
	m.Helper()
	state := map[string]string{}
	err := filepath.WalkDir(m.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		state["file "+strings.TrimPrefix(path, m.root)] = fmt.Sprintf("%v %s", info.Mode(), content)
		return err
	})
	if err != nil {
		m.Fatal(err)
	}
	for unit, with := range m.running {
		state["running "+unit] = with
	}
	for unit := range m.enabled {
		state["enabled "+unit] = "true"
	}
	return state
}

func differences(got, want map[string]string) string {
	var out strings.Builder
	for name, value := range want {
		if got[name] != value {
			fmt.Fprintf(&out, "%s is %q, want %q\n", name, got[name], value)
		}
	}
	for name := range maps.Keys(got) {
		if _, found := want[name]; !found {
			fmt.Fprintf(&out, "%s must not be there\n", name)
		}
	}
	return out.String()
}

func file(path, content string) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{Path: path, Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: content}}}
}

func image(path, image, in string) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{
		Path: path, Permissions: ptr.To[uint32](0o755),
		Content: extensionsv1alpha1.FileContent{ImageRef: &extensionsv1alpha1.FileContentImageRef{Image: image, FilePathInImage: in}},
	}
}

func unit(name, content string, files ...string) extensionsv1alpha1.Unit {
	return extensionsv1alpha1.Unit{Name: name, Content: &content, FilePaths: files}
}

// first and second are two configurations that differ in each kind of thing.
func first() *osc.Config {
	return &osc.Config{
		Files: []extensionsv1alpha1.File{
			file("/etc/same", "same"), file("/etc/changed", "1"), file("/etc/gone", "gone"), file(paths.KubeletConfig, "cpuManagerPolicy: none"),
			image("/opt/bin/kubelet", "kubelet:1", "/kubelet"), image(paths.Agent, "agent:1", "/agent"),
			{Path: "/etc/secret", Content: extensionsv1alpha1.FileContent{SecretRef: &extensionsv1alpha1.FileContentSecretRef{Name: "a", DataKey: "key"}}},
		},
		Units: []extensionsv1alpha1.Unit{
			unit(paths.AgentUnit, "agent", paths.Agent), unit(paths.KubeletUnit, "kubelet", "/opt/bin/kubelet", paths.KubeletConfig),
			unit("same.service", "same", "/etc/same"), unit("gone.service", "gone"), unit("uses.service", "uses", "/etc/changed"),
			{Name: "sshd.service", DropIns: []extensionsv1alpha1.DropIn{{Name: "a.conf", Content: "a"}, {Name: "b.conf", Content: "b"}}},
		},
		CRI: &extensionsv1alpha1.CRIConfig{Name: "containerd", Containerd: &extensionsv1alpha1.ContainerdConfig{
			SandboxImage: "pause:1", Registries: []extensionsv1alpha1.RegistryConfig{{Upstream: "gone.io"}, {Upstream: "same.io"}},
		}},
	}
}

func second() *osc.Config {
	c := first()
	c.Files = []extensionsv1alpha1.File{
		file("/etc/same", "same"), file("/etc/changed", "2"), file("/etc/new", "new"), file(paths.KubeletConfig, "cpuManagerPolicy: static"),
		image("/opt/bin/kubelet", "kubelet:2", "/kubelet"), image(paths.Agent, "agent:2", "/agent"), c.Files[6],
	}
	c.Units = []extensionsv1alpha1.Unit{
		c.Units[0], c.Units[1], c.Units[2], unit("new.service", "new", "/etc/new"), c.Units[4],
		{Name: "sshd.service", DropIns: []extensionsv1alpha1.DropIn{{Name: "a.conf", Content: "A"}}},
		{Name: "off.service", Content: ptr.To("off"), Enable: ptr.To(false)},
	}
	c.CRI = c.CRI.DeepCopy()
	c.CRI.Containerd.SandboxImage = "pause:2"
	c.CRI.Containerd.Registries = []extensionsv1alpha1.RegistryConfig{{Upstream: "same.io"}, {
		Upstream: "new.io", ReadinessProbe: ptr.To(true), Hosts: []extensionsv1alpha1.RegistryHost{{URL: "https://cache.example.com"}},
	}}
	return c
}

// knows records which files the units of the configurations read.
func (m *machine) knows(configs ...*osc.Config) {
	for _, config := range configs {
		for _, unit := range config.Units {
			m.uses[unit.Name] = unit.FilePaths
		}
	}
	m.uses[paths.ContainerdUnit] = []string{paths.ContainerdConfig}
}
