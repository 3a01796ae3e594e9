// Package health restarts containerd and kubelet if they do not answer, and watches the addresses and the readiness of the Node.
package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/cluster"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

const (
	// period is the time between two checks, and timeout limits one (Gardener).
	period  = 30 * time.Second
	timeout = 10 * time.Second
)

// Reasons of Events.
//
// +events:on=Node of the target cluster
const (
	ReasonContainerd = "containerd" // Warning: containerd did not answer for a minute, and was restarted.
	ReasonKubelet    = "kubelet"    // Warning: kubelet was not healthy for a minute and was restarted, the Node lost its address, or its readiness changed often.
)

// Controller checks the programs that run Pods.
type Controller struct {
	Client   *cluster.Client
	Node     *cluster.Watched[corev1.Node]
	Events   *cluster.Events
	Systemd  host.Systemd
	Commands host.Commands
	// Kubelet is the URL of the health of kubelet.
	Kubelet string
	Clock   clock.PassiveClock
	Log     logr.Logger

	containerd, kubelet probe
	toggles             toggles
	// internal are the addresses that the Node had last.
	internal []string
}

// Run checks everything once. A unit that is not installed is not checked.
func (c *Controller) Run(ctx context.Context) (time.Duration, error) {
	errs := []error{
		c.check(ctx, paths.ContainerdUnit, ReasonContainerd, &c.containerd, c.askContainerd),
		c.check(ctx, paths.KubeletUnit, ReasonKubelet, &c.kubelet, c.askKubelet),
	}
	if node, _ := c.Node.Get(); node != nil {
		errs = append(errs, c.checkNode(ctx, node))
	}
	return period, errors.Join(errs...)
}

// check asks a program, and restarts its unit if it failed for too long.
func (c *Controller) check(ctx context.Context, unit, reason string, p *probe, ask func(context.Context) error) error {
	states, err := c.Systemd.States(ctx, []string{unit})
	if err != nil {
		return err
	}
	if !isChecked(states[0]) {
		p.failsSince = time.Time{}
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	failure := ask(limited)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failure != nil && p.failsSince.IsZero() {
		c.Log.Info("Does not answer", "unit", unit, "error", failure.Error())
	}
	if !p.observe(failure == nil, c.Clock.Now()) {
		return nil
	}
	c.Events.Write(corev1.EventTypeWarning, reason, fmt.Sprintf("%s is restarted, because it failed for %s: %v", unit, restartAfter, failure))
	return c.Systemd.Restart(ctx, unit)
}

func (c *Controller) askContainerd(ctx context.Context) error {
	_, err := c.Commands.Run(ctx, "ctr", "version")
	return err
}

func (c *Controller) askKubelet(ctx context.Context) error { return AskKubelet(ctx, c.Kubelet) }

// AskKubelet requests the health of kubelet at a URL, and returns an error if it is not healthy.
func AskKubelet(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10))
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// checkNode reports a readiness that changes often, and restores an address that kubelet lost.
func (c *Controller) checkNode(ctx context.Context, node *corev1.Node) error {
	if c.toggles.observe(node, c.Clock.Now()) {
		c.Events.Write(corev1.EventTypeWarning, ReasonKubelet, fmt.Sprintf("The readiness of the Node changed %d times within %s", manyToggles, togglePeriod))
	}
	internal, reachable := addresses(node)
	if reachable {
		c.internal = internal
		return nil
	}
	if len(c.internal) == 0 {
		return nil
	}
	patch, err := restored(c.internal[0])
	if err != nil {
		return err
	}
	if err := c.Client.PatchNode(ctx, node.Name, types.StrategicMergePatchType, patch, "status"); err != nil {
		return err
	}
	c.Events.Write(corev1.EventTypeWarning, ReasonKubelet, "The Node lost its addresses, and has the internal address "+c.internal[0]+" again")
	return nil
}
