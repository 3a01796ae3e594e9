// Package host has the effects of the node agent on its machine: files, systemd units, files of images, and commands.
package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// directoryMode is the mode of directories that are created for a file.
	directoryMode = 0o755
	// suffix of a file that is not complete. Programs that read all files of a directory ignore hidden files, or require another suffix.
	suffix = ".incomplete"
)

// Files changes files below a root directory.
type Files struct {
	// Root is the directory that contains the paths: "/" on a machine.
	Root string
	// Before is called before each change of the file system. If it returns an error, the change is not made. Nil in programs: tests use it to
	// stop between any two changes.
	Before func(change, path string) error
	// NoSync is set by tests that write thousands of files: after a crash of the machine, changes may be lost.
	NoSync bool
}

func (f Files) before(change, path string) error {
	if f.Before == nil {
		return nil
	}
	return f.Before(change, path)
}

// Real returns the path of a file including the root.
func (f Files) Real(path string) string { return filepath.Join(f.Root, path) }

// Read returns the content of a file.
func (f Files) Read(path string) ([]byte, error) { return os.ReadFile(f.Real(path)) }

// Exists reports whether there is a file. A file that cannot be examined is an error.
func (f Files) Exists(path string) (bool, error) {
	_, err := os.Lstat(f.Real(path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Write replaces a file as a whole: after a crash or on a full disk, the old content remains. mode has the bits of chmod(2), at most 07777.
func (f Files) Write(path string, content []byte, mode uint32) error {
	return f.WriteFrom(path, mode, bytes.NewReader(content), nil)
}

// WriteFrom is Write for a stream. check, which may be nil, is called with the path of the complete file, including the root, before it replaces the old one.
func (f Files) WriteFrom(path string, mode uint32, content io.Reader, check func(actual string) error) error {
	if err := f.MakeDirectory(filepath.Dir(path)); err != nil {
		return err
	}
	incomplete := incompletePath(path)
	if err := f.create(incomplete, mode, content, check); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), f.remove(incomplete))
	}
	if err := f.Rename(incomplete, path); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), f.remove(incomplete))
	}
	return nil
}

// create creates a file and waits until the disk has it.
func (f Files) create(path string, mode uint32, content io.Reader, check func(actual string) error) error {
	if err := f.before("write", path); err != nil {
		return err
	}
	actual := f.Real(path)
	file, err := os.OpenFile(actual, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err == nil {
		err = file.Chmod(modeOf(mode)) // the umask does not count
	}
	if err == nil && !f.NoSync {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if check == nil {
		return nil
	}
	return check(actual)
}

// Rename renames a file, which replaces the file of that name, and waits until the disk has it.
func (f Files) Rename(from, to string) error {
	if err := f.before("rename", to); err != nil {
		return err
	}
	if err := os.Rename(f.Real(from), f.Real(to)); err != nil {
		return err
	}
	return f.syncDirectory(filepath.Dir(to))
}

// Link gives a file another name, which replaces the file of that name.
func (f Files) Link(from, to string) error {
	incomplete := incompletePath(to)
	if err := f.remove(incomplete); err != nil {
		return err
	}
	if err := f.before("link", to); err != nil {
		return err
	}
	if err := os.Link(f.Real(from), f.Real(incomplete)); err != nil {
		return err
	}
	// rename(2) does nothing if both names are the same file, and would leave the incomplete one.
	return errors.Join(f.Rename(incomplete, to), f.remove(incomplete))
}

// Remove removes a file, or a directory with everything in it, and what an interrupted Write left. It returns nil if there is none.
func (f Files) Remove(path string) error {
	return errors.Join(f.remove(path), f.remove(incompletePath(path)))
}

func (f Files) remove(path string) error {
	if _, err := os.Lstat(f.Real(path)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := f.before("remove", path); err != nil {
		return err
	}
	if err := os.RemoveAll(f.Real(path)); err != nil {
		return err
	}
	return f.syncDirectory(filepath.Dir(path))
}

// MakeDirectory creates a directory and its parents.
func (f Files) MakeDirectory(path string) error {
	if info, err := os.Stat(f.Real(path)); err == nil && info.IsDir() {
		return nil
	}
	if err := f.before("mkdir", path); err != nil {
		return err
	}
	if err := os.MkdirAll(f.Real(path), directoryMode); err != nil {
		return err
	}
	return f.syncDirectory(filepath.Dir(path))
}

// syncDirectory waits until the disk has the entries of a directory. A directory that is gone has none.
func (f Files) syncDirectory(path string) error {
	if f.NoSync {
		return nil
	}
	directory, err := os.Open(f.Real(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

func incompletePath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+suffix)
}

// modeOf converts bits of chmod(2).
func modeOf(bits uint32) fs.FileMode {
	mode := fs.FileMode(bits & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			mode |= flag
		}
	}
	return mode
}
