package inplace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/certificate"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/identity"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// Times of the steps (Gardener), except healthEvery.
const (
	healthEvery, healthTimeout   = 2 * time.Second, 5 * time.Minute
	commandEvery, commandTimeout = 30 * time.Second, 5 * time.Minute
	// retryAfter is the time after which a step that failed is tried again.
	retryAfter = 10 * time.Minute
)

// networkProblems is what the output of a command contains if it failed because of the network (Gardener).
const networkProblems = "network problems"

// errReboots reports that the operating system is updated when the machine starts again.
var errReboots = errors.New("the machine must start again")

// awaitKubelet waits until kubelet is healthy.
func (u *Updater) awaitKubelet(ctx context.Context, _ *corev1.Node, _ *record) error {
	err := u.until(ctx, healthEvery, healthTimeout, func() (bool, error) { return false, u.Kubelet(ctx) })
	if err != nil && ctx.Err() == nil {
		return &failure{fmt.Errorf("kubelet is not healthy: %w", err), false}
	}
	return err
}

// until calls a function until it succeeds or reports that it is final, and returns its last error.
func (u *Updater) until(ctx context.Context, every, timeout time.Duration, try func() (final bool, err error)) error {
	deadline := u.Clock.Now().Add(timeout)
	for {
		final, err := try()
		if err == nil || final || !u.Clock.Now().Before(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-u.Clock.After(every):
		}
	}
}

// updateOperatingSystem runs the command of the configuration, unless the new version runs already. A machine that has started again with the
// old version since has rolled the update back. If only the node agent has started again, the command is run again.
func (u *Updater) updateOperatingSystem(ctx context.Context, node *corev1.Node, begun *record) error {
	version, err := u.version()
	if err != nil || version == begun.OperatingSystem {
		return err
	}
	boot, err := u.boot()
	if err != nil {
		return err
	}
	switch {
	case begun.Boot == boot && begun.Returned:
		return errReboots
	case begun.Boot != "" && begun.Boot != boot:
		return &failure{fmt.Errorf("the machine started again with version %s, and not %s: the update was probably rolled back", version, begun.OperatingSystem), true}
	}
	command, err := u.command()
	if err != nil {
		return err
	}
	if err := u.mark(ctx, node, "", "", map[string]any{AnnotationVersion: begun.OperatingSystem}); err != nil {
		return err
	}
	begun.Boot = boot
	if err := u.write(begun); err != nil {
		return err
	}
	if err := u.runCommand(ctx, command); err != nil {
		return err
	}
	if version, err = u.version(); err != nil || version == begun.OperatingSystem {
		return err
	}
	begun.Returned = true
	u.Log.Info("The machine has to start again to run the new version of the operating system", "version", begun.OperatingSystem)
	return errors.Join(u.write(begun), errReboots)
}

// command returns the command of the configuration that is applied, and its arguments.
func (u *Updater) command() ([]string, error) {
	applied, err := u.Applied()
	if err != nil {
		return nil, err
	}
	if applied == nil || applied.OSUpdate == nil || applied.OSUpdate.Command == "" {
		return nil, &failure{errors.New("the extension gives no command for it in status.inPlaceUpdates.osUpdate of the OperatingSystemConfig"), true}
	}
	return append([]string{applied.OSUpdate.Command}, applied.OSUpdate.Args...), nil
}

// runCommand runs a command. It is tried again while it fails because of the network.
func (u *Updater) runCommand(ctx context.Context, command []string) error {
	limited, cancel := context.WithTimeout(ctx, 2*commandTimeout)
	defer cancel()
	err := u.until(limited, commandEvery, commandTimeout, func() (bool, error) {
		output, err := u.Commands.Run(limited, command[0], command[1:]...)
		return !isNetwork(output, err), err
	})
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return &failure{err, false}
}

// isNetwork reports whether a command failed because of the network.
func isNetwork(output []byte, err error) bool {
	return err != nil && strings.Contains(strings.ToLower(string(output)+err.Error()), networkProblems)
}

// renewOwn requests a certificate of the new authority for the node agent.
func (u *Updater) renewOwn(ctx context.Context, _ *corev1.Node, _ *record) error {
	if u.Files.Config.ClientConnection.Kubeconfig != "" {
		return nil // the configuration names a kubeconfig
	}
	machine, err := u.Files.Machine()
	if err != nil {
		return err
	}
	issued, key, err := identity.Request(ctx, u.Client, machine, u.Clock)
	if err != nil {
		return err
	}
	if err := u.Files.Store(issued, key); err != nil {
		return err
	}
	return certificate.ErrRenewed
}

// renewKubelet lets kubelet request its certificates from the new authority, with the certificate that it has.
func (u *Updater) renewKubelet(ctx context.Context, node *corev1.Node, begun *record) error {
	if err := u.Files.StoreForRenewal(); err != nil {
		return err
	}
	for _, path := range []string{paths.KubeletKubeconfig, paths.KubeletCertificates} {
		if err := u.Files.Remove(path); err != nil {
			return err
		}
	}
	if err := u.Systemd.Restart(ctx, paths.KubeletUnit); err != nil {
		return &failure{err, false}
	}
	if err := u.awaitKubelet(ctx, node, begun); err != nil {
		return err
	}
	return u.awaitCertificate(ctx)
}

// awaitCertificate waits until kubelet has a certificate. The kubeconfig with the old one is removed afterwards, and without either, kubelet
// could not join again.
func (u *Updater) awaitCertificate(ctx context.Context) error {
	err := u.until(ctx, healthEvery, healthTimeout, func() (bool, error) {
		found, err := u.Files.Exists(paths.KubeletCertificate)
		if err == nil && !found {
			err = errors.New("kubelet has not got a certificate: check its CertificateSigningRequests")
		}
		return false, err
	})
	if err != nil && ctx.Err() == nil {
		return &failure{err, false}
	}
	return err
}
