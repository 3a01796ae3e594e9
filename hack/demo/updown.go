package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	logName = "demo.log" // the first file that is created, and the last one that is removed
	// landscapeDirectory is the directory with the files of `make base-cluster`, below the directory of the demo.
	landscapeDirectory = "landscape"

	pollInterval = 100 * time.Millisecond
	stopTimeout  = time.Minute
	killTimeout  = 10 * time.Second
)

// up starts the background process and shows its progress until everything runs.
func (d *demo) up(ctx context.Context) error {
	pid, running, err := d.running()
	if err != nil {
		return err
	}
	if running {
		d.say("The demo is already running (pid %d).", pid)
		d.sayHowToUseIt()
		return nil
	}
	if err := d.checkPrograms(); err != nil {
		return err
	}
	// The files of a demo that was killed are of no use.
	if err := d.removeFiles(); err != nil {
		return err
	}
	if err := d.makeDirectory(); err != nil {
		return err
	}
	if err := d.startBackground(ctx); err != nil {
		return err
	}
	d.say("Everything runs.")
	d.sayHowToUseIt()
	return nil
}

func (d *demo) makeDirectory() error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return fmt.Errorf("creating a directory for the demo: %w", err)
	}
	return nil
}

func (d *demo) checkPrograms() error {
	if d.controlPlaneOnly {
		return nil
	}
	binaries := []string{apiServerProgram}
	for _, program := range programs {
		binaries = append(binaries, program.binary)
	}
	for _, binary := range binaries {
		if _, err := os.Stat(d.program(binary)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("bin/%s does not exist: run `make build` first, or use --control-plane-only", binary)
		} else if err != nil {
			return fmt.Errorf("looking for bin/%s: %w", binary, err)
		}
	}
	return nil
}

func (d *demo) sayHowToUseIt() {
	d.say(`
  export KUBECONFIG=%s
  bin/kubectl get nodes

Logs are in %s. Stop it with: make down`, d.path("kubeconfig"), d.path("*.log"))
}

// startBackground re-executes this program in its own session. The child reports its progress through a pipe. If the pipe
// ends before the child reports that everything runs, the start failed.
func (d *demo) startBackground(ctx context.Context) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	log, err := os.Create(d.path(logName))
	if err != nil {
		return fmt.Errorf("opening a log: %w", err)
	}
	defer log.Close() //nolint:errcheck // the background process has its own descriptor
	progress, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("creating a pipe: %w", err)
	}
	defer progress.Close() //nolint:errcheck // only read

	args := []string{serveCommand, "--dir", d.dir, fmt.Sprintf("--control-plane-only=%t", d.controlPlaneOnly)}
	command := exec.Command(executable, args...) //nolint:noctx // outlives this process
	command.Dir, command.Stdout, command.Stderr = d.root, log, log
	command.ExtraFiles = []*os.File{writer}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := errors.Join(command.Start(), writer.Close()); err != nil {
		return fmt.Errorf("starting the background process: %w", err)
	}

	defer context.AfterFunc(ctx, func() { _ = command.Process.Signal(syscall.SIGTERM) })()
	for scanner := bufio.NewScanner(progress); scanner.Scan(); {
		if scanner.Text() == servingMessage {
			return nil
		}
		d.say("%s", scanner.Text())
	}
	_ = command.Wait() // the log has the details
	if ctx.Err() != nil {
		return errors.New("interrupted, everything is stopped")
	}
	reason, err := os.ReadFile(log.Name())
	if err != nil {
		return fmt.Errorf("reading the log of the background process: %w", err)
	}
	return errors.New(strings.TrimPrefix(strings.TrimSpace(string(reason)), "error: "))
}

// down stops the background process, which stops all others, and removes the files of the demo.
func (d *demo) down(ctx context.Context) error {
	pid, running, err := d.running()
	if err != nil {
		return err
	}
	if running {
		d.say("Stopping the demo (pid %d), this takes a few seconds.", pid)
		if err := d.stop(ctx, pid); err != nil {
			return err
		}
	} else {
		d.say("The demo is not running, there is nothing to stop.")
	}
	if err := d.removeFiles(); err != nil {
		return err
	}
	if running {
		d.say("Stopped, and its files are removed.")
	}
	return nil
}

// removeFiles removes the directory of the demo. It refuses to remove a directory that the demo did not create.
func (d *demo) removeFiles() error {
	entries, err := os.ReadDir(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing the files of the demo: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == landscapeDirectory })
	if _, err := os.Stat(d.path(logName)); err != nil && len(entries) > 0 {
		return fmt.Errorf("%s was not created by the demo, remove it or choose another --dir: %w", d.dir, err)
	}
	for _, entry := range entries {
		if entry.Name() == logName {
			continue
		}
		if err := os.RemoveAll(d.path(entry.Name())); err != nil {
			return fmt.Errorf("removing the files of the demo: %w", err)
		}
	}
	if err := os.RemoveAll(d.path(logName)); err != nil {
		return fmt.Errorf("removing the files of the demo: %w", err)
	}
	if err := os.Remove(d.dir); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
		return fmt.Errorf("removing the files of the demo: %w", err)
	}
	return nil
}

// stop asks the background process to end, and kills it if it does not. Even then, none of its processes remains: see the
// watchdog of the package controlplane.
func (d *demo) stop(ctx context.Context, pid int) error {
	for _, attempt := range []struct {
		signal  syscall.Signal
		timeout time.Duration
	}{{syscall.SIGTERM, stopTimeout}, {syscall.SIGKILL, killTimeout}} {
		if err := syscall.Kill(pid, attempt.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stopping the process %d: %w", pid, err)
		}
		err := wait.PollUntilContextTimeout(ctx, pollInterval, attempt.timeout, true, func(context.Context) (bool, error) {
			_, running, err := d.running()
			return !running, err
		})
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("the process %d does not end", pid)
}
