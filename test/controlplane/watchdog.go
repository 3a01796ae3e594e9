package controlplane

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// markerEnv is the environment variable by which the watchdog identifies the processes of a control plane. Its value is
// the directory of the control plane with a trailing slash.
const markerEnv = "TRELLIS_CONTROL_PLANE"

const watchdogTimeout = 15 * time.Second

//go:embed watchdog.sh
var watchdogScript string

// watchdog is a shell that waits until this process closes a pipe. The pipe also closes if this process dies. The
// watchdog then kills the remaining processes of the control plane and optionally removes its directory.
type watchdog struct {
	command *exec.Cmd
	pipe    io.Closer
}

func startWatchdog(dir string, remove bool) (*watchdog, error) {
	action := "keep"
	if remove {
		action = "remove"
	}
	// A process in its own session gets neither Ctrl-C nor the hang-up of the terminal. It has no context, because it must
	// outlive this process.
	command := exec.Command("sh", "-c", watchdogScript, "controlplane-watchdog", dir, action) //nolint:noctx // see above
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the control plane's watchdog: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the control plane's watchdog: %w", err)
	}
	return &watchdog{command: command, pipe: pipe}, nil
}

// release makes the watchdog clean up, and waits for it.
func (w *watchdog) release() error {
	timer := time.AfterFunc(watchdogTimeout, func() { _ = w.command.Process.Kill() })
	defer timer.Stop()
	if err := errors.Join(w.pipe.Close(), w.command.Wait()); err != nil {
		return fmt.Errorf("cleaning up after the control plane: %w", err)
	}
	return nil
}
