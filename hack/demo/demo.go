package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

// demo has the paths of the demo.
type demo struct {
	root             string // of the repository
	dir              string // of the demo's files
	controlPlaneOnly bool
	// built are the paths of programs that a test has built.
	built map[string]string
	out   io.Writer
}

// complete finds the root of the repository and makes the directory absolute.
func (d *demo) complete() (err error) {
	if d.root, err = controlplane.RepositoryRoot(); err != nil {
		return err
	}
	if d.dir == "" {
		d.dir = filepath.Join(d.root, ".run")
	}
	if d.dir, err = filepath.Abs(d.dir); err != nil {
		return fmt.Errorf("finding the directory of the demo: %w", err)
	}
	return nil
}

func (d *demo) path(name string) string { return filepath.Join(d.dir, name) }

// say prints a message for the user. It ignores errors, because the demo does not depend on a reader.
func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// lock writes the process ID of the background process to the file pid and locks the file. The kernel releases the lock
// when the process ends, so the lock proves that the process runs. A process ID alone might belong to another process.
func (d *demo) lock() (*os.File, error) {
	file, err := os.OpenFile(d.path("pid"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the pid file: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", file.Name(), err), file.Close())
	}
	if err := errors.Join(file.Truncate(0), writePID(file)); err != nil {
		return nil, errors.Join(fmt.Errorf("writing %s: %w", file.Name(), err), file.Close())
	}
	return file, nil
}

func writePID(file *os.File) error {
	_, err := fmt.Fprintln(file, os.Getpid())
	return err
}

// running returns the process ID of the background process if it runs.
func (d *demo) running() (pid int, running bool, err error) {
	file, err := os.Open(d.path("pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("opening the pid file: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read

	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		return 0, false, nil // closing the file unlocks it
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return 0, false, fmt.Errorf("asking for the lock of the pid file: %w", err)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return 0, false, fmt.Errorf("reading the pid file: %w", err)
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(string(content))); err != nil {
		return 0, false, fmt.Errorf("reading the pid file: %w", err)
	}
	return pid, true, nil
}
