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

// startProcess starts etcd. It inherits stdout and stderr.
func startProcess(program, configFile string) (*process, error) {
	p := &process{
		command: exec.Command(program, "--config-file="+configFile), //nolint:gosec,noctx // the program of the configuration; it is stopped by a signal
		ended:   make(chan error, 1),
	}
	p.command.Stdout, p.command.Stderr = os.Stdout, os.Stderr
	p.command.SysProcAttr = endsWithParent()
	started := make(chan error)
	go func() {
		// The parent death signal is sent when the thread that started the process ends.
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

// wait blocks until etcd has terminated. When the context ends, it sends SIGTERM and waits without a timeout, because
// the kubelet limits the time.
func (p *process) wait(ctx context.Context) error {
	select {
	case err := <-p.ended:
		if err == nil {
			err = errors.New("it exited without an error")
		}
		return fmt.Errorf("etcd terminated: %w", err)
	case <-ctx.Done():
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop etcd: %w", err)
	}
	// The exit code does not matter after SIGTERM.
	if err := <-p.ended; err != nil && !errors.As(err, new(*exec.ExitError)) {
		return fmt.Errorf("stop etcd: %w", err)
	}
	return nil
}
