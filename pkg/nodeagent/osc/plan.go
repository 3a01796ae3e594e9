package osc

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// defaultMode is the mode of files without permissions, and unitMode that of unit files.
const defaultMode, unitMode = 0o600, 0o600

// Phase is a group of steps. The steps of a phase do not depend on each other. If one fails, the others run, and the phases behind do not.
type Phase int

// The phases, in their order.
const (
	// Content writes the configuration of containerd, and files whose content is known.
	Content Phase = iota
	// Images writes files of container images, which need the registries of the phase before.
	Images
	// UnitFiles writes and removes unit files.
	UnitFiles
	// Reload makes systemd read them.
	Reload
	// Enablement changes which units start with the machine.
	Enablement
	// Self restarts the node agent if it changed, so that all that follows is done by the new program.
	Self
	// Runtime restarts containerd, which others need.
	Runtime
	// Commands restarts and stops other units.
	Commands
	// Probes writes registries that must answer first, possibly by Pods that need kubelet.
	Probes
	// CleanUp removes files that no unit uses any more.
	CleanUp
)

// Action is what a step does.
type Action string

// The actions.
const (
	ConfigureContainerd Action = "configure containerd"
	WriteFile           Action = "write"
	RemovePath          Action = "remove"
	WriteRegistry       Action = "write registry"
	ReloadSystemd       Action = "reload systemd"
	EnableUnit          Action = "enable"
	DisableUnit         Action = "disable"
	StopUnit            Action = "stop"
	RestartUnit         Action = "restart"
	RestartSelf         Action = "restart the node agent"
)

// Step changes one thing. Doing it twice is the same as doing it once.
type Step struct {
	Phase  Phase  `json:"phase"`
	Action Action `json:"action"`
	// Name is the path of a file, the name of a unit, or the upstream of a registry.
	Name string `json:"name,omitempty"`
	// File is the file to write.
	File *extensionsv1alpha1.File `json:"file,omitempty"`
	// Registry is the registry to write.
	Registry *extensionsv1alpha1.RegistryConfig `json:"registry,omitempty"`
	// CRI is the configuration of containerd.
	CRI *extensionsv1alpha1.CRIConfig `json:"cri,omitempty"`
	// Removes is a file that is removed while the unit is stopped.
	Removes string `json:"removes,omitempty"`
}

// ID identifies a step within its plan.
func (s Step) ID() string { return fmt.Sprintf("%d %s", s.Phase, s) }

// String returns what the step does, for messages.
func (s Step) String() string { return strings.TrimSpace(string(s.Action) + " " + s.Name) }

// planner computes the steps from what was applied to what is wanted.
type planner struct {
	// Of these, applied and attempted may be nil.
	wanted, applied, attempted *Config
	steps                      []Step
}

// Plan returns the steps that lead to the wanted configuration, ordered by phase. applied is the last configuration that was applied as a whole.
// attempted is what configurations that were begun since and not finished may have changed, from Touched: its state is not known. Both may be nil.
// The result depends only on the arguments.
func Plan(wanted, applied, attempted *Config) []Step {
	p := &planner{wanted: wanted, applied: applied, attempted: attempted}
	p.containerd()
	p.files()
	self := p.units()
	p.registries()
	has := func(phase Phase) bool {
		return slices.ContainsFunc(p.steps, func(s Step) bool { return s.Phase == phase })
	}
	if has(UnitFiles) && !has(Reload) {
		p.add(Reload, ReloadSystemd, "")
	}
	if self {
		p.add(Self, RestartSelf, "")
	}
	slices.SortStableFunc(p.steps, func(a, b Step) int { return int(a.Phase - b.Phase) })
	return p.steps
}

func (p *planner) add(phase Phase, action Action, name string) {
	p.steps = append(p.steps, Step{Phase: phase, Action: action, Name: name})
}

// configures reports whether a configuration has settings of containerd.
func configures(c *Config) bool {
	return c != nil && c.CRI != nil && c.CRI.Name == extensionsv1alpha1.CRINameContainerD && c.CRI.Containerd != nil
}

// settings returns the settings of containerd that are in its own file.
func settings(c *Config) *extensionsv1alpha1.CRIConfig {
	if !configures(c) {
		return nil
	}
	cri := c.CRI.DeepCopy()
	cri.Containerd.Registries = nil
	return cri
}

func (p *planner) containerdChanged() bool {
	wanted := settings(p.wanted)
	return wanted != nil && (touchesContainerd(p.attempted) || !equality.Semantic.DeepEqual(wanted, settings(p.applied)))
}

// touchesContainerd reports whether a record of what was attempted has settings of containerd, and not only registries.
func touchesContainerd(attempted *Config) bool {
	return configures(attempted) && attempted.CRI.Containerd.SandboxImage != ""
}

func (p *planner) containerd() {
	if !p.containerdChanged() {
		return
	}
	p.steps = append(p.steps, Step{Phase: Content, Action: ConfigureContainerd, CRI: settings(p.wanted), Name: string(p.wanted.CRI.Name)})
	p.add(Reload, ReloadSystemd, "") // for the drop-in with the directory of runtimes
	p.add(Runtime, RestartUnit, paths.ContainerdUnit)
}

func (p *planner) fileChanged(file extensionsv1alpha1.File) bool {
	applied := p.applied.file(file.Path)
	return applied == nil || p.attempted.file(file.Path) != nil || !equality.Semantic.DeepEqual(*applied, file)
}

func (p *planner) files() {
	for i := range p.wanted.Files {
		file := p.wanted.Files[i]
		if !p.fileChanged(file) {
			continue
		}
		phase := Content
		if file.Content.ImageRef != nil {
			phase = Images
		}
		if file.Permissions == nil {
			file.Permissions = ptr.To[uint32](defaultMode)
		}
		p.steps = append(p.steps, Step{Phase: phase, Action: WriteFile, Name: file.Path, File: &file})
	}
	for _, path := range p.removedFiles() {
		p.add(CleanUp, RemovePath, path)
	}
}

// removedFiles returns the paths of files that are not wanted any more.
func (p *planner) removedFiles() []string {
	var removed []string
	for _, before := range []*Config{p.applied, p.attempted} {
		if before == nil {
			continue
		}
		for _, file := range before.Files {
			if p.wanted.file(file.Path) == nil && !slices.Contains(removed, file.Path) {
				removed = append(removed, file.Path)
			}
		}
	}
	return removed
}

// unitChanged reports whether a unit, or a file that it uses, changed.
func (p *planner) unitChanged(unit *extensionsv1alpha1.Unit) bool {
	applied := p.applied.unit(unit.Name)
	if applied == nil || p.attempted.unit(unit.Name) != nil || !equality.Semantic.DeepEqual(applied, unit) {
		return true
	}
	return slices.ContainsFunc(unit.FilePaths, func(path string) bool {
		file := p.wanted.file(path)
		if file == nil {
			return slices.Contains(p.removedFiles(), path)
		}
		return p.fileChanged(*file)
	})
}

// units adds the steps of all units, and reports whether the node agent must restart itself.
func (p *planner) units() (self bool) {
	for i := range p.wanted.Units {
		unit := &p.wanted.Units[i]
		if !p.unitChanged(unit) {
			continue
		}
		p.unitFiles(unit)
		if enabled(unit) != nil && !*enabled(unit) {
			p.add(Enablement, DisableUnit, unit.Name)
		} else if enabled(unit) != nil {
			p.add(Enablement, EnableUnit, unit.Name)
		}
		switch {
		case unit.Name == paths.AgentUnit:
			self = true
		case ptr.Deref(unit.Command, "") == extensionsv1alpha1.CommandStop || !ptr.Deref(unit.Enable, true):
			p.add(Commands, StopUnit, unit.Name)
		default:
			p.restart(unit.Name)
		}
	}
	for _, before := range []*Config{p.applied, p.attempted} {
		if before == nil {
			continue
		}
		for i := range before.Units {
			if unit := &before.Units[i]; p.wanted.unit(unit.Name) == nil {
				p.removeUnit(unit)
			}
		}
	}
	binary := p.wanted.file(paths.Agent)
	return self || binary != nil && p.fileChanged(*binary)
}

// enabled returns whether a unit starts with the machine, or nil if that is left as it is: the units of the operating system, which have no
// content.
func enabled(unit *extensionsv1alpha1.Unit) *bool {
	if unit.Enable == nil && unit.Content != nil {
		return ptr.To(true)
	}
	return unit.Enable
}

func (p *planner) restart(name string) {
	step := Step{Phase: Commands, Action: RestartUnit, Name: name}
	switch name {
	case paths.ContainerdUnit:
		step.Phase = Runtime
	case paths.KubeletUnit:
		if cpuPolicy(p.wanted) != cpuPolicy(p.applied) && p.applied != nil {
			step.Removes = paths.KubeletCPUState
		}
	}
	if !slices.ContainsFunc(p.steps, func(s Step) bool { return s.ID() == step.ID() }) {
		p.steps = append(p.steps, step)
	}
}

// unitFiles adds the steps that write the files of a unit, and remove those that it has no more.
func (p *planner) unitFiles(unit *extensionsv1alpha1.Unit) {
	file := paths.Units + "/" + unit.Name
	write := func(path, content string) {
		p.steps = append(p.steps, Step{Phase: UnitFiles, Action: WriteFile, Name: path, File: &extensionsv1alpha1.File{
			Path: path, Permissions: ptr.To[uint32](unitMode),
			Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: content}},
		}})
	}
	if unit.Content != nil {
		write(file, *unit.Content)
	}
	for _, dropIn := range unit.DropIns {
		write(file+".d/"+dropIn.Name, dropIn.Content)
	}
	for _, before := range []*extensionsv1alpha1.Unit{p.applied.unit(unit.Name), p.attempted.unit(unit.Name)} {
		if before == nil {
			continue
		}
		if before.Content != nil && unit.Content == nil {
			p.remove(UnitFiles, file)
		}
		for _, old := range before.DropIns {
			if find(unit.DropIns, func(d extensionsv1alpha1.DropIn) bool { return d.Name == old.Name }) == nil {
				p.remove(UnitFiles, file+".d/"+old.Name)
			}
		}
	}
}

// remove adds the removal of a path, once.
func (p *planner) remove(phase Phase, path string) {
	step := Step{Phase: phase, Action: RemovePath, Name: path}
	if !slices.ContainsFunc(p.steps, func(s Step) bool { return s.ID() == step.ID() }) {
		p.steps = append(p.steps, step)
	}
}

// removeUnit adds the steps that remove a unit. Of a unit of the operating system, only the drop-ins go.
func (p *planner) removeUnit(unit *extensionsv1alpha1.Unit) {
	file := paths.Units + "/" + unit.Name
	if unit.Content == nil {
		for _, dropIn := range unit.DropIns {
			p.remove(UnitFiles, file+".d/"+dropIn.Name)
		}
		if len(unit.DropIns) > 0 {
			p.restart(unit.Name)
		}
		return
	}
	if slices.ContainsFunc(p.steps, func(s Step) bool { return s.Action == StopUnit && s.Name == unit.Name }) {
		return
	}
	// Before its file goes: systemd forgets how to stop a unit without file.
	p.add(Content, DisableUnit, unit.Name)
	p.add(Content, StopUnit, unit.Name)
	p.remove(UnitFiles, file)
	p.remove(UnitFiles, file+".d")
}

func (p *planner) registryChanged(registry *extensionsv1alpha1.RegistryConfig) bool {
	applied := p.applied.registry(registry.Upstream)
	return applied == nil || p.attempted.registry(registry.Upstream) != nil || !reflect.DeepEqual(applied, registry)
}

func (p *planner) registries() {
	if !configures(p.wanted) {
		return
	}
	wanted := p.wanted.registries()
	for i := range wanted {
		registry := &wanted[i]
		if !p.registryChanged(registry) {
			continue
		}
		phase := Content
		if ptr.Deref(registry.ReadinessProbe, false) {
			phase = Probes
		}
		p.steps = append(p.steps, Step{Phase: phase, Action: WriteRegistry, Name: registry.Upstream, Registry: registry})
	}
	for _, before := range []*Config{p.applied, p.attempted} {
		for _, registry := range before.registries() {
			if p.wanted.registry(registry.Upstream) == nil {
				p.remove(CleanUp, paths.ContainerdRegistries+"/"+registry.Upstream)
			}
		}
	}
}

// cpuPolicy returns the CPU manager policy of kubelet, whose state must go when it changes.
func cpuPolicy(c *Config) string {
	file := c.file(paths.KubeletConfig)
	if file == nil || file.Content.Inline == nil {
		return ""
	}
	content, err := Inline(file.Content.Inline)
	if err != nil {
		return ""
	}
	var kubelet struct {
		CPUManagerPolicy string `json:"cpuManagerPolicy"`
	}
	if yaml.Unmarshal(content, &kubelet) != nil || kubelet.CPUManagerPolicy == "" {
		return "none"
	}
	return kubelet.CPUManagerPolicy
}
