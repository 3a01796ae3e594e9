package member

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// process is a running etcd.
type process struct {
	command *exec.Cmd
	ended   chan error
}

// startProcess starts etcd. What it writes goes where this process writes.
func startProcess(program, configFile string) (*process, error) {
	p := &process{
		command: exec.Command(program, "--config-file="+configFile), //nolint:gosec,noctx // the program of the configuration; it is stopped by a signal
		ended:   make(chan error, 1),
	}
	p.command.Stdout, p.command.Stderr = os.Stdout, os.Stderr
	p.command.SysProcAttr = endsWithParent()
	started := make(chan error)
	go func() {
		// The kernel ends the process with the thread that has started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.command.Start()
		started <- err
		if err == nil {
			p.ended <- p.command.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	return p, nil
}

// wait returns when etcd has ended. When the context ends, etcd is asked to end, and has as long for that as the kubelet allows.
func (p *process) wait(ctx context.Context) error {
	select {
	case err := <-p.ended:
		if err == nil {
			err = errors.New("it has ended without an error")
		}
		return fmt.Errorf("etcd does not run any more: %w", err)
	case <-ctx.Done():
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop etcd: %w", err)
	}
	// Whatever it ended with: it was asked to.
	if err := <-p.ended; err != nil && !errors.As(err, new(*exec.ExitError)) {
		return fmt.Errorf("stop etcd: %w", err)
	}
	return nil
}
