package bootstrap

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/nodeagent/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/apply"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/units"
)

// systemd records what it is asked for.
type systemd struct {
	host.Systemd
	asked []string
	fails string
}

func (s *systemd) ask(what string) error {
	s.asked = append(s.asked, what)
	if what == s.fails {
		return errors.New(what + " fails")
	}
	return nil
}

func (s *systemd) Reload(context.Context) error                 { return s.ask("reload") }
func (s *systemd) Enable(_ context.Context, unit string) error  { return s.ask("enable " + unit) }
func (s *systemd) Disable(_ context.Context, unit string) error { return s.ask("disable " + unit) }
func (s *systemd) Start(_ context.Context, unit string) error   { return s.ask("start " + unit) }
func (s *systemd) Stop(_ context.Context, unit string) error    { return s.ask("stop " + unit) }
func (s *systemd) Restart(_ context.Context, unit string) error { return s.ask("restart " + unit) }

func TestInstall(t *testing.T) {
	s := &systemd{}
	m := Machine{Files: host.Files{Root: t.TempDir(), NoSync: true}, Systemd: s, Commands: &commands{}, Log: logr.Discard()}
	if err := Install(t.Context(), m, &v1alpha1.NodeAgentConfiguration{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"reload", "enable gardener-node-agent.service", "start gardener-node-agent.service", "disable gardener-node-init.service"}
	if !slices.Equal(s.asked, want) {
		t.Errorf("asked for %q", s.asked)
	}
	for path, content := range map[string]string{paths.AgentUnit: units.Agent(), paths.FallbackUnit: units.Fallback()} {
		if got, err := m.Files.Read(paths.Units + "/" + path); err != nil || string(got) != content {
			t.Errorf("%s is %q: %v", path, got, err)
		}
	}
	*s = systemd{fails: "start gardener-node-agent.service"}
	if err := Install(t.Context(), m, &v1alpha1.NodeAgentConfiguration{}); err == nil || slices.Contains(s.asked, "disable gardener-node-init.service") {
		t.Errorf("the first unit does not try again: %q: %v", s.asked, err)
	}
	*s = systemd{}
	m.Commands = &commands{answers: map[string]string{"lsblk": "fails"}}
	config := &v1alpha1.NodeAgentConfiguration{Bootstrap: &v1alpha1.BootstrapConfiguration{KubeletDataVolumeSize: ptr.To[int64](100)}}
	if err := Install(t.Context(), m, config); err == nil || !strings.Contains(err.Error(), "the data disk of kubelet: lsblk fails") || len(s.asked) > 0 {
		t.Errorf("without its disk, the node agent starts: %q: %v", s.asked, err)
	}
}

func TestReset(t *testing.T) {
	s := &systemd{}
	m := Machine{Files: host.Files{Root: t.TempDir(), NoSync: true}, Systemd: s, Commands: &commands{}, Log: logr.Discard()}
	applier := &apply.Applier{Files: m.Files, Systemd: s, Commands: m.Commands, Log: m.Log}
	config := &osc.Config{
		Files: []extensionsv1alpha1.File{{Path: "/etc/a", Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: "a"}}}},
		Units: []extensionsv1alpha1.Unit{{Name: "a.service", Content: ptr.To("[Service]\n"), FilePaths: []string{"/etc/a"}}},
	}
	for _, err := range []error{
		Install(t.Context(), m, &v1alpha1.NodeAgentConfiguration{}), applier.Apply(t.Context(), "1", config),
		m.Files.Write(paths.Kubeconfig, []byte("secret"), 0o600), m.Files.Write(paths.KubeletKubeconfig, []byte("secret"), 0o600),
		m.Files.Write("/etc/other", nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.asked = nil
	for range 2 { // it may be repeated
		if err := Reset(t.Context(), m, applier); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]bool{
		"/etc/a": false, paths.Units + "/a.service": false, paths.Units + "/" + paths.AgentUnit: false, paths.Base: false,
		paths.KubeletKubeconfig: false, "/etc/other": true,
	} {
		if found, err := m.Files.Exists(path); found != want || err != nil {
			t.Errorf("%s exists: %v: %v", path, found, err)
		}
	}
	if !slices.Contains(s.asked, "stop a.service") || s.asked[1] != "stop gardener-node-agent.service" {
		t.Errorf("asked for %q", s.asked)
	}
}
