// Package unitcheck reports on the Node whether the systemd units of its configuration work.
package unitcheck

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/apply"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/cluster"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// Controller writes the condition SystemdUnitsReady. At rest it writes nothing.
type Controller struct {
	Client  *cluster.Client
	Node    *cluster.Watched[corev1.Node]
	Systemd host.Systemd
	Applier *apply.Applier
	Files   host.Files
	Clock   clock.PassiveClock
	// Period is the time between two checks. A unit that is starting or stopping for Stuck is not healthy.
	Period, Stuck time.Duration

	// units are those of the configuration that was read at a time.
	units []extensionsv1alpha1.Unit
	read  time.Time
}

// Run checks the units of the configuration that was applied last. While one is being applied, it checks nothing.
func (c *Controller) Run(ctx context.Context) (time.Duration, error) {
	node, _ := c.Node.Get()
	if node == nil {
		return c.Period, nil
	}
	known, err := c.load()
	if err != nil || !known {
		return c.Period, err
	}
	names := make([]string, len(c.units))
	for i := range c.units {
		names[i] = c.units[i].Name
	}
	states, err := c.Systemd.States(ctx, names)
	if err != nil {
		return c.Period, err
	}
	now := c.Clock.Now()
	change, err := patch(node, conclude(c.units, states, now, c.Stuck), now)
	if err != nil || change == nil {
		return c.Period, err
	}
	return c.Period, c.Client.PatchNode(ctx, node.Name, types.StrategicMergePatchType, change, "status")
}

// load reads the units if the configuration changed. It reports false if there is none, or one is being applied.
func (c *Controller) load() (bool, error) {
	if pending, err := c.Files.Exists(paths.Pending); err != nil || pending {
		return false, err
	}
	info, err := os.Stat(c.Files.Real(paths.LastApplied))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.ModTime().Equal(c.read) {
		return true, nil
	}
	last, err := c.Applier.Last()
	if err != nil || last == nil {
		return false, err
	}
	c.units, c.read = last.Units, info.ModTime()
	return true, nil
}
