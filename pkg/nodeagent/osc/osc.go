// Package osc decides what an OperatingSystemConfig means for one host: which files, units and settings of containerd it has, and which steps
// lead there from what was applied before. All functions are pure.
package osc

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// Key is the key of the OperatingSystemConfig in its Secret.
const Key = "osc.yaml"

// maxMode has all bits of chmod(2).
const maxMode = 0o7777

// Config is what an OperatingSystemConfig asks of one host. It is stored on the machine.
type Config struct {
	Units []extensionsv1alpha1.Unit `json:"units,omitempty"`
	Files []extensionsv1alpha1.File `json:"files,omitempty"`
	// CRI is nil if containerd is not configured.
	CRI            *extensionsv1alpha1.CRIConfig      `json:"criConfig,omitempty"`
	InPlaceUpdates *extensionsv1alpha1.InPlaceUpdates `json:"inPlaceUpdates,omitempty"`
	OSUpdate       *extensionsv1alpha1.OSUpdate       `json:"osUpdate,omitempty"`
}

// Decode decodes the OperatingSystemConfig of a Secret and returns what it asks of a host. Unknown fields are ignored, because gardenlet may be
// newer. The error has all mistakes.
func Decode(data []byte, host string) (*Config, error) {
	object := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := yaml.Unmarshal(data, object); err != nil {
		return nil, fmt.Errorf("the OperatingSystemConfig is not valid YAML: %w", err)
	}
	c := &Config{
		Units: mergeUnits(object.Spec.Units, object.Status.ExtensionUnits),
		CRI:   object.Spec.CRIConfig, InPlaceUpdates: object.Spec.InPlaceUpdates,
	}
	for _, file := range slices.Concat(object.Spec.Files, object.Status.ExtensionFiles) {
		if file.HostName == nil || *file.HostName == host {
			c.Files = append(c.Files, file)
		}
	}
	if status := object.Status.InPlaceUpdates; status != nil {
		c.OSUpdate = status.OSUpdate
	}
	if errs := c.mistakes(); len(errs) > 0 {
		return nil, fmt.Errorf("the OperatingSystemConfig is not valid: %w", errs.ToAggregate())
	}
	return c, nil
}

// mergeUnits merges the units of an extension into those of gardenlet by name. Command, enable and content of the extension win; drop-ins and
// paths of files are added.
func mergeUnits(units, extension []extensionsv1alpha1.Unit) []extensionsv1alpha1.Unit {
	var merged []extensionsv1alpha1.Unit
	for _, unit := range slices.Concat(units, extension) {
		i := slices.IndexFunc(merged, func(m extensionsv1alpha1.Unit) bool { return m.Name == unit.Name })
		if i < 0 {
			merged = append(merged, *unit.DeepCopy())
			continue
		}
		into := &merged[i]
		into.Command = cmpPointer(unit.Command, into.Command)
		into.Enable = cmpPointer(unit.Enable, into.Enable)
		into.Content = cmpPointer(unit.Content, into.Content)
		for _, dropIn := range unit.DropIns {
			into.DropIns = slices.DeleteFunc(into.DropIns, func(d extensionsv1alpha1.DropIn) bool { return d.Name == dropIn.Name })
			into.DropIns = append(into.DropIns, dropIn)
		}
		into.FilePaths = append(into.FilePaths, unit.FilePaths...)
	}
	return merged
}

func cmpPointer[T any](first, second *T) *T {
	if first != nil {
		return first
	}
	return second
}

// unitName matches the names of units, and dropInName those of their drop-ins. Neither has a slash.
var (
	unitName     = regexp.MustCompile(`^[a-zA-Z0-9:_.@\\-]+\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$`)
	dropInName   = regexp.MustCompile(`^[a-zA-Z0-9:_@-][a-zA-Z0-9:_.@-]*$`)
	registryName = regexp.MustCompile(`^[a-zA-Z0-9_\[][a-zA-Z0-9.:_\[\]-]*$`)
)

// IsUnit reports whether a text is the name of a systemd unit.
func IsUnit(name string) bool { return unitName.MatchString(name) }

// mistakes returns what is wrong. Names and paths are checked because they become paths on the machine.
func (c *Config) mistakes() field.ErrorList {
	var errs field.ErrorList
	paths := map[string]bool{}
	for i, file := range c.Files {
		at := field.NewPath("files").Index(i)
		if !path.IsAbs(file.Path) || path.Clean(file.Path) != file.Path || file.Path == "/" {
			errs = append(errs, field.Invalid(at.Child("path"), file.Path, "must be an absolute path without . and .."))
		}
		if paths[file.Path] {
			errs = append(errs, field.Duplicate(at.Child("path"), file.Path))
		}
		paths[file.Path] = true
		if ptr.Deref(file.Permissions, 0) > maxMode {
			errs = append(errs, field.Invalid(at.Child("permissions"), *file.Permissions, "must be at most 4095 (07777)"))
		}
		if sources(file.Content) != 1 {
			errs = append(errs, field.Invalid(at.Child("content"), file.Path, "must have exactly one of inline, secretRef and imageRef"))
		}
	}
	for i, unit := range c.Units {
		at := field.NewPath("units").Index(i)
		if !unitName.MatchString(unit.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), unit.Name, "must be the name of a systemd unit"))
		}
		for j, dropIn := range unit.DropIns {
			if !dropInName.MatchString(dropIn.Name) {
				errs = append(errs, field.Invalid(at.Child("dropIns").Index(j).Child("name"), dropIn.Name, "must be the name of a file"))
			}
		}
	}
	for i, registry := range c.registries() {
		if !registryName.MatchString(registry.Upstream) || strings.Contains(registry.Upstream, "..") {
			errs = append(errs, field.Invalid(field.NewPath("criConfig", "containerd", "registries").Index(i).Child("upstream"), registry.Upstream,
				"must be _default or the host of a registry"))
		}
	}
	return errs
}

func sources(content extensionsv1alpha1.FileContent) int {
	count := 0
	for _, set := range []bool{content.Inline != nil, content.SecretRef != nil, content.ImageRef != nil} {
		if set {
			count++
		}
	}
	return count
}

func (c *Config) registries() []extensionsv1alpha1.RegistryConfig {
	if c == nil || c.CRI == nil || c.CRI.Containerd == nil {
		return nil
	}
	return c.CRI.Containerd.Registries
}

func (c *Config) file(path string) *extensionsv1alpha1.File {
	if c == nil {
		return nil
	}
	return find(c.Files, func(f extensionsv1alpha1.File) bool { return f.Path == path })
}

func (c *Config) unit(name string) *extensionsv1alpha1.Unit {
	if c == nil {
		return nil
	}
	return find(c.Units, func(u extensionsv1alpha1.Unit) bool { return u.Name == name })
}

func (c *Config) registry(upstream string) *extensionsv1alpha1.RegistryConfig {
	return find(c.registries(), func(r extensionsv1alpha1.RegistryConfig) bool { return r.Upstream == upstream })
}

func find[T any](list []T, is func(T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return &list[i]
	}
	return nil
}

// Union returns a configuration with everything that either has, for records of what may be on a machine. Where both have something of a name,
// that of the second counts, with the drop-ins of both.
func Union(first, second *Config) *Config {
	if first == nil || second == nil {
		return cmpPointer(second, first)
	}
	union := &Config{CRI: cmpPointer(second.CRI, first.CRI), InPlaceUpdates: second.InPlaceUpdates, OSUpdate: second.OSUpdate}
	for _, unit := range first.Units {
		if second.unit(unit.Name) == nil {
			union.Units = append(union.Units, unit)
		}
	}
	for _, unit := range second.Units {
		unit = *unit.DeepCopy()
		if old := first.unit(unit.Name); old != nil {
			unit.Content = cmpPointer(unit.Content, old.Content)
			for _, dropIn := range old.DropIns {
				if find(unit.DropIns, func(d extensionsv1alpha1.DropIn) bool { return d.Name == dropIn.Name }) == nil {
					unit.DropIns = append(unit.DropIns, dropIn)
				}
			}
		}
		union.Units = append(union.Units, unit)
	}
	for _, file := range first.Files {
		if second.file(file.Path) == nil {
			union.Files = append(union.Files, file)
		}
	}
	union.Files = append(union.Files, second.Files...)
	if first.CRI != nil && second.CRI != nil {
		union.CRI = unionCRI(first, second)
	}
	return union
}

func unionCRI(first, second *Config) *extensionsv1alpha1.CRIConfig {
	union := second.CRI.DeepCopy()
	for _, registry := range first.registries() {
		if second.registry(registry.Upstream) == nil {
			if union.Containerd == nil {
				union.Containerd = &extensionsv1alpha1.ContainerdConfig{}
			}
			union.Containerd.Registries = append(union.Containerd.Registries, registry)
		}
	}
	return union
}
