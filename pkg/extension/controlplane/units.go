package controlplane

import (
	"io"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// findUnit returns the unit with a name, or nil.
func findUnit(units []extensionsv1alpha1.Unit, name string) *extensionsv1alpha1.Unit {
	at := slices.IndexFunc(units, func(one extensionsv1alpha1.Unit) bool { return one.Name == name })
	if at < 0 {
		return nil
	}
	return &units[at]
}

// findFile returns the file with a path, or nil.
func findFile(files []extensionsv1alpha1.File, path string) *extensionsv1alpha1.File {
	at := slices.IndexFunc(files, func(one extensionsv1alpha1.File) bool { return one.Path == path })
	if at < 0 {
		return nil
	}
	return &files[at]
}

// SetFile adds a file, or replaces the file with the same path.
func SetFile(files *[]extensionsv1alpha1.File, one extensionsv1alpha1.File) {
	if found := findFile(*files, one.Path); found != nil {
		*found = one
		return
	}
	*files = append(*files, one)
}

// parseUnit returns the options of a unit, or none if it has no content.
func parseUnit(content *string) ([]UnitOption, error) {
	if content == nil {
		return nil, nil
	}
	parsed, err := unit.DeserializeOptions(strings.NewReader(*content))
	if err != nil {
		return nil, err
	}
	options := make([]UnitOption, 0, len(parsed))
	for _, one := range parsed {
		options = append(options, UnitOption{Section: one.Section, Name: one.Name, Value: one.Value})
	}
	return options, nil
}

// renderUnit sets the content of a unit. If the options are unchanged, it retains gardenlet's formatting.
func renderUnit(of *extensionsv1alpha1.Unit, options []UnitOption) error {
	before, err := parseUnit(of.Content)
	if err != nil || slices.Equal(before, options) {
		return err
	}
	rendered := make([]*unit.UnitOption, 0, len(options))
	for _, one := range options {
		rendered = append(rendered, unit.NewUnitOption(one.Section, one.Name, one.Value))
	}
	text, err := io.ReadAll(unit.Serialize(rendered))
	if err != nil {
		return err
	}
	content := string(text)
	of.Content = &content
	return nil
}

// SetKubeletFlag sets a flag, such as --cloud-provider, in the command line of kubelet.
func SetKubeletFlag(options []UnitOption, flag, value string) []UnitOption {
	changed := slices.Clone(options)
	for i, one := range changed {
		if one.Section == "Service" && one.Name == "ExecStart" {
			// gardenlet writes each flag on its own line.
			lines := strings.Split(one.Value, " \\\n    ")
			changed[i].Value = strings.Join(SetFlag(lines, flag, value), " \\\n    ")
		}
	}
	return changed
}
