// Package drift reports differences between the configuration that was applied last and the machine. It changes nothing: programs such as drivers may
// have changed files on purpose, and putting them back would fight with these programs.
package drift

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/apply"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/cluster"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// Reason of Events.
//
// +events:on=Node of the target cluster
const (
	Reason = "OSCDrift" // Warning: files or units are not what the OperatingSystemConfig says. The node agent looks when it starts, and changes nothing.
)

// Controller reports differences once.
type Controller struct {
	Node    *cluster.Watched[corev1.Node]
	Events  *cluster.Events
	Systemd host.Systemd
	Applier *apply.Applier
	Files   host.Files

	done bool
}

// Run compares the machine with its configuration when the Node is known.
func (c *Controller) Run(ctx context.Context) (time.Duration, error) {
	node, _ := c.Node.Get()
	if node == nil || c.done {
		return 0, nil
	}
	last, err := c.Applier.Last()
	if err != nil || last == nil {
		return 0, err
	}
	var names []string
	for _, unit := range last.Units {
		names = append(names, unit.Name)
	}
	states, err := c.Systemd.States(ctx, names)
	if err != nil {
		return 0, err
	}
	differences, err := Differences(last, states, c.Files.Read)
	if err != nil {
		return 0, err
	}
	if len(differences) > 0 {
		c.Events.Write(corev1.EventTypeWarning, Reason, strings.Join(differences, "; "))
	}
	c.done = true
	return 0, nil
}

// Differences returns what is not as a configuration says: files whose content is in it, the presence of other files, unit files, drop-ins, and whether
// units start with the machine. states are those of the units, in their order; read reads a file.
func Differences(config *osc.Config, states []host.UnitState, read func(path string) ([]byte, error)) ([]string, error) {
	var differences []string
	compare := func(path string, content *string) error {
		current, err := read(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			differences = append(differences, path+" does not exist")
		case err != nil:
			return err
		case content != nil && string(current) != *content:
			differences = append(differences, path+" has another content")
		}
		return nil
	}
	var errs []error
	for _, file := range config.Files {
		var content *string
		if file.Content.Inline != nil {
			inline, err := osc.Inline(file.Content.Inline)
			if err != nil {
				return nil, err
			}
			text := string(inline)
			content = &text
		}
		errs = append(errs, compare(file.Path, content))
	}
	for i, unit := range config.Units {
		file := paths.Units + "/" + unit.Name
		if unit.Content != nil {
			errs = append(errs, compare(file, unit.Content))
		}
		for _, dropIn := range unit.DropIns {
			errs = append(errs, compare(file+".d/"+dropIn.Name, &dropIn.Content))
		}
		if difference := enablement(unit, states[i]); difference != "" {
			differences = append(differences, difference)
		}
	}
	slices.Sort(differences)
	return differences, errors.Join(errs...)
}

// enablement returns how a unit differs in whether it starts with the machine.
func enablement(unit extensionsv1alpha1.Unit, state host.UnitState) string {
	switch {
	case unit.Enable == nil:
		return ""
	case *unit.Enable && state.Enabled == "disabled":
		return unit.Name + " is disabled"
	case !*unit.Enable && state.Enabled == "enabled":
		return unit.Name + " is enabled"
	}
	return ""
}
