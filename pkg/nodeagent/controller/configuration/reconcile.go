// Package configuration applies the OperatingSystemConfig of the node, and says on the Node which one is applied.
package configuration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/apply"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/cluster"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/identity"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/inplace"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/loop"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// Reasons of Events.
//
// +events:on=Node of the target cluster
const (
	ReasonApplied = "OSCApplied" // Normal: the node has applied a new OperatingSystemConfig.
	ReasonFailed  = "OSCFailed"  // Warning: steps of applying the OperatingSystemConfig failed. The node agent tries again.
	ReasonInvalid = "OSCInvalid" // Warning: the OperatingSystemConfig cannot be used, and the node keeps the previous one.
)

// Controller applies the OperatingSystemConfig of a Secret.
type Controller struct {
	Client  *cluster.Client
	Secret  *cluster.Watched[corev1.Secret]
	Node    *cluster.Watched[corev1.Node]
	Events  *cluster.Events
	Applier *apply.Applier
	// InPlace updates the machine of a pool whose machines are not replaced.
	InPlace *inplace.Updater
	Files   identity.Files
	// Host is the name of the machine in lower case.
	Host  string
	Clock clock.PassiveClock
	Log   logr.Logger
	// Applied is called with the time when a configuration was applied.
	Applied func(at time.Time)

	seen seen
}

// seen is the configuration that the controller saw last.
type seen struct {
	version, checksum string
	at                time.Time
	controlPlane      bool
	// waits is set while another node tries the configuration.
	waits bool
	// needs is what the machine waits to be updated for.
	needs inplace.Updates
}

// Run applies the configuration if it is another one than the applied one, and reports it.
func (c *Controller) Run(ctx context.Context) (time.Duration, error) {
	secret, known := c.Secret.Get()
	if !known {
		return 0, nil
	}
	if secret == nil { // the node keeps what it has
		c.Log.V(1).Info("The Secret does not exist", "secret", c.Files.Config.Controllers.OperatingSystemConfig.SecretName)
		return 0, nil
	}
	if err := c.look(secret); err != nil {
		return 0, err
	}
	node, _ := c.Node.Get()
	last, begun, err := c.Applier.State()
	if err != nil {
		return 0, err
	}
	if last != c.seen.checksum || begun != "" {
		if wait, waits, err := c.change(ctx, secret, node, last, begun); err != nil || waits {
			return wait, err
		}
	}
	if again, done, err := c.InPlace.Finish(ctx, node); err != nil || !done {
		return again, err
	}
	return 0, c.report(ctx, node)
}

// change applies the configuration. It returns whether that waits, and when it looks again; 0 until the Secret or the Node changes. A change
// for which the machine is updated in place waits until the Pods of the node are gone, and not for other nodes.
func (c *Controller) change(ctx context.Context, secret *corev1.Secret, node *corev1.Node, last, begun string) (time.Duration, bool, error) {
	config, err := osc.Decode(secret.Data[osc.Key], c.Host)
	if err != nil {
		return 0, false, c.invalid(err)
	}
	applied, err := c.Applier.Applied()
	if err != nil {
		return 0, false, err
	}
	plan, err := c.InPlace.Plan(config, applied, node)
	switch {
	case err != nil:
		return 0, false, err
	case !plan.MayBegin:
		if c.seen.needs != plan.Updates {
			c.Log.Info("Waits until the Pods are gone before the machine is updated in place", "updates", plan.String())
		}
		c.seen.needs = plan.Updates
		return 0, true, nil
	case plan.InPlace():
		if err := c.InPlace.Begin(c.seen.checksum, plan); err != nil {
			return 0, false, err
		}
	default:
		if wait, waits := c.waits(node, secret, last, begun); waits {
			return wait, true, nil
		}
	}
	return 0, false, c.apply(ctx, config)
}

// waits reports whether the node does not apply the configuration yet, and when it looks again; 0 until the Secret changes.
func (c *Controller) waits(node *corev1.Node, secret *corev1.Secret, last, begun string) (time.Duration, bool) {
	now := facts{
		wanted: c.seen.checksum, last: last, begun: begun, seen: c.seen.at, now: c.Clock.Now(), delay: delayOf(node, secret),
		turn: turnOf(node, secret, c.seen.checksum),
	}
	if c.seen.waits && now.turn == turnAny { // the delay begins when all nodes may apply it, so that it spreads them
		c.seen.waits, c.seen.at, now.seen = false, now.now, now.now
	}
	wait, forAnother := now.wait()
	switch {
	case forAnother:
		if !c.seen.waits {
			c.Log.Info("Applies a new configuration when another node runs with it", "checksum", c.seen.checksum)
		}
		c.seen.waits = true
	case wait > 0:
		c.Log.Info("Applies a new configuration later", "checksum", c.seen.checksum, "in", wait.String())
	}
	return wait, forAnother || wait > 0
}

// look reads the configuration if it changed.
func (c *Controller) look(secret *corev1.Secret) error {
	if secret.ResourceVersion == c.seen.version {
		return nil
	}
	data, found := secret.Data[osc.Key]
	if !found {
		return c.invalid(fmt.Errorf("the Secret %s has no key %q", secret.Name, osc.Key))
	}
	config, err := osc.Decode(data, c.Host)
	if err != nil {
		return c.invalid(fmt.Errorf("the Secret %s: %w", secret.Name, err))
	}
	sum := sha256.Sum256(data)
	now := seen{version: secret.ResourceVersion, checksum: hex.EncodeToString(sum[:]), at: c.Clock.Now(), controlPlane: isControlPlane(config)}
	if now.checksum == c.seen.checksum {
		now.at, now.waits, now.needs = c.seen.at, c.seen.waits, c.seen.needs
	}
	c.seen = now
	return nil
}

func (c *Controller) invalid(err error) error {
	c.Events.Write(corev1.EventTypeWarning, ReasonInvalid, err.Error())
	return err
}

func (c *Controller) apply(ctx context.Context, config *osc.Config) error {
	c.Log.Info("Applies the configuration", "checksum", c.seen.checksum)
	err := c.Applier.Apply(ctx, c.seen.checksum, config)
	if errors.Is(err, apply.ErrRestart) {
		return loop.End(err)
	}
	if err != nil && ctx.Err() == nil {
		c.Events.Write(corev1.EventTypeWarning, ReasonFailed, err.Error())
	}
	if err == nil {
		c.Log.Info("Applied the configuration", "checksum", c.seen.checksum)
		c.Applied(c.Clock.Now())
	}
	return err
}

// report says on the Node what is applied. When the Node exists, the machine has joined.
func (c *Controller) report(ctx context.Context, node *corev1.Node) error {
	if node == nil {
		return nil
	}
	zone, err := c.Files.Read(paths.Zone)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	says := report{
		checksum: c.seen.checksum, version: c.Files.Config.Controllers.OperatingSystemConfig.KubernetesVersion,
		zone: strings.TrimSpace(string(zone)), controlPlane: c.seen.controlPlane, at: c.Clock.Now(),
	}
	patch, err := says.patch(node)
	if err != nil {
		return err
	}
	if patch != nil {
		if err := c.Client.PatchNode(ctx, node.Name, types.MergePatchType, patch, ""); err != nil {
			return err
		}
		if node.Annotations[constants.AnnotationChecksumCloudConfigData] != says.checksum {
			c.Events.Write(corev1.EventTypeNormal, ReasonApplied, "Applied the OperatingSystemConfig with the checksum "+says.checksum)
		}
	}
	return c.Files.Joined()
}
