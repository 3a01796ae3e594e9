// Package restart restarts the systemd units that an annotation of the Node names.
package restart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/apply"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/cluster"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/loop"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// Annotation has the names of units, separated by commas. Names without a suffix are services.
const Annotation = "worker.gardener.cloud/restart-systemd-services"

// Reasons of Events.
//
// +events:on=Node of the target cluster
const (
	ReasonRestarted = "SystemdUnitsRestarted"    // Normal: units were restarted because the annotation of the Node named them.
	ReasonFailed    = "SystemdUnitsNotRestarted" // Warning: units that the annotation named were not restarted. They are not tried again.
)

// Controller restarts units.
type Controller struct {
	Client  *cluster.Client
	Node    *cluster.Watched[corev1.Node]
	Events  *cluster.Events
	Systemd host.Systemd
	Log     logr.Logger
}

// Run restarts the units, and removes the annotation. If the node agent itself is named, it is restarted last, after the annotation is gone.
func (c *Controller) Run(ctx context.Context) (time.Duration, error) {
	node, _ := c.Node.Get()
	if node == nil {
		return 0, nil
	}
	value, found := node.Annotations[Annotation]
	if !found {
		return 0, nil
	}
	units, self := parse(value)
	var failed []error
	var restarted []string
	for _, unit := range units {
		if !osc.IsUnit(unit) {
			failed = append(failed, fmt.Errorf("%q is not the name of a systemd unit", unit))
			continue
		}
		if err := c.Systemd.Restart(ctx, unit); err != nil {
			failed = append(failed, err)
			continue
		}
		restarted = append(restarted, unit)
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err := c.Client.PatchNode(ctx, node.Name, types.JSONPatchType, removal(value), ""); err != nil {
		return 0, err
	}
	c.tell(restarted, failed)
	if self {
		return 0, loop.End(fmt.Errorf("%w: the annotation %s of the Node asks for it", apply.ErrRestart, Annotation))
	}
	return 0, nil
}

func (c *Controller) tell(restarted []string, failed []error) {
	if len(restarted) > 0 {
		c.Events.Write(corev1.EventTypeNormal, ReasonRestarted, "Restarted "+strings.Join(restarted, ", "))
	}
	if err := errors.Join(failed...); err != nil {
		c.Events.Write(corev1.EventTypeWarning, ReasonFailed, err.Error())
	}
}

// parse returns the units of an annotation, each once, without the node agent, and whether that is among them.
func parse(value string) (units []string, self bool) {
	for _, name := range strings.Split(value, ",") {
		name = strings.TrimSpace(name)
		if name != "" && !strings.Contains(name, ".") {
			name += ".service"
		}
		switch {
		case name == paths.AgentUnit:
			self = true
		case name != "" && !slices.Contains(units, name):
			units = append(units, name)
		}
	}
	return units, self
}

// removal returns the JSON patch that removes the annotation, unless it has got another value since.
func removal(value string) []byte {
	path := "/metadata/annotations/" + strings.ReplaceAll(Annotation, "/", "~1")
	patch, err := json.Marshal([]map[string]string{{"op": "test", "path": path, "value": value}, {"op": "remove", "path": path}})
	if err != nil {
		panic(err) // texts can be encoded
	}
	return patch
}
