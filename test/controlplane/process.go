package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// logTail is how many bytes of a log an error contains.
const logTail = 2048

// Process is a program that runs next to the API server. It ends with the control plane at the latest.
type Process struct {
	name      string
	component bool // one of the control plane's own
	// environment are additional variables.
	environment []string
	log         string
	command     *exec.Cmd
	done        chan struct{}
	err         error // set before done is closed
}

// StartProcess starts a program whose output goes to <name>.log in [ControlPlane.Dir]. The control plane stops it, the
// last one first. On Linux, it also ends when this process is killed. It gets the environment of this process without
// variables that refer to another cluster.
func (cp *ControlPlane) StartProcess(name, path string, args ...string) (*Process, error) {
	return cp.start(&Process{name: name}, path, args)
}

// StartProcessWith is like [ControlPlane.StartProcess], with additional variables of the environment, in the form name=value.
func (cp *ControlPlane) StartProcessWith(environment []string, name, path string, args ...string) (*Process, error) {
	return cp.start(&Process{name: name, environment: environment}, path, args)
}

func (cp *ControlPlane) start(p *Process, path string, args []string) (*Process, error) {
	p.log, p.done = cp.path(p.name+".log"), make(chan struct{})
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own descriptor

	p.command = exec.Command(path, args...) //nolint:noctx // lives until it is stopped
	p.command.Stdout, p.command.Stderr = log, log
	p.command.Env = slices.Concat(slices.DeleteFunc(os.Environ(), namesCluster), collectLess(path), p.environment, []string{markerEnv + "=" + cp.dir + "/"})
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process to handle
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.done)
	}()

	cp.mutex.Lock()
	defer cp.mutex.Unlock()
	cp.processes = append(cp.processes, p)
	return p, nil
}

// namesCluster reports whether a variable refers to a cluster outside of the test.
func namesCluster(variable string) bool {
	return strings.HasPrefix(variable, "KUBECONFIG=") || strings.HasPrefix(variable, "TARGET_KUBECONFIG=")
}

// PID returns the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended, or nil while it runs.
func (p *Process) Err() error {
	select {
	case <-p.done:
		reason := "exit status 0"
		if p.err != nil {
			reason = p.err.Error()
		}
		return fmt.Errorf("%s has ended (%s), the end of its log:\n%s", p.name, reason, tail(p.log))
	default:
		return nil
	}
}

// Stop asks the process to end, and kills it after the grace period. A grace period of 0 kills it immediately. Stopping a
// process that has already ended does nothing.
func (p *Process) Stop(grace time.Duration) error {
	if grace > 0 {
		if err := p.signal(syscall.SIGTERM); err != nil {
			return err
		}
		select {
		case <-p.done:
			return nil
		case <-time.After(grace):
		}
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

func (p *Process) signal(signal syscall.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	return nil
}

// tail returns the last lines of a file, or the error if it cannot be read.
func tail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close() //nolint:errcheck // only read
	if info, err := file.Stat(); err == nil && info.Size() > logTail {
		if _, err := file.Seek(-logTail, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(content))
}
