package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Builder builds the programs of a repository.
type Builder struct {
	// Root is the root of the repository.
	Root string
	// Directory is the directory of the programs and of their stamps, below the root.
	Directory string
	// Out receives one line for each program that is built.
	Out io.Writer
	// Go is the path of the Go tool.
	Go string
	// Now is the clock for build times.
	Now func() time.Time
}

// New returns a builder for the repository.
func New(root string, out io.Writer) *Builder {
	tool := os.Getenv("GO")
	if tool == "" {
		tool = "go"
	}
	return &Builder{Root: root, Directory: Directory, Out: out, Go: tool, Now: time.Now}
}

// Path returns the path of a program.
func (b *Builder) Path(name string) string { return filepath.Join(b.Root, b.Directory, name) }

// Missing returns the programs that do not exist in the pinned version.
func (b *Builder) Missing(programs []Program) ([]Program, error) {
	var missing []Program
	for _, p := range programs {
		stamp, err := b.stamp(p)
		if err != nil {
			return nil, err
		}
		if !b.upToDate(p, stamp) {
			missing = append(missing, p)
		}
	}
	return missing, nil
}

// Build builds the programs that do not exist in the pinned version, and those of the project. If it is interrupted,
// finished programs are kept.
func (b *Builder) Build(ctx context.Context, programs []Program) error {
	var pinned, own []Program
	for _, p := range programs {
		if p.From == "" {
			own = append(own, p)
		} else {
			pinned = append(pinned, p)
		}
	}
	missing, err := b.Missing(pinned)
	if err != nil {
		return err
	}
	for i, p := range missing {
		version, err := Version(b.Root, p.Module, p.From)
		if err != nil {
			return err
		}
		began := b.Now()
		fmt.Fprintf(b.Out, "  building %s %s (%d of %d) … ", p.Name, version, i+1, len(missing))
		if err := b.build(ctx, p, version); err != nil {
			fmt.Fprintln(b.Out, "failed")
			return err
		}
		fmt.Fprintf(b.Out, "%s\n", b.Now().Sub(began).Round(time.Second))
	}
	return b.buildOwn(ctx, own)
}

func (b *Builder) build(ctx context.Context, p Program, version string) error {
	made, stampPath := b.Path(p.Name), b.stampPath(p)
	stamp, err := b.stamp(p)
	if err != nil {
		return err
	}
	err = errors.Join(os.MkdirAll(filepath.Dir(made), 0o755), os.MkdirAll(filepath.Dir(stampPath), 0o755))
	if err = errors.Join(err, ignoreMissing(os.Remove(stampPath))); err != nil {
		return fmt.Errorf("building %s: %w", p.Name, err)
	}
	target := made + ".building" // a running program cannot be written to, only replaced
	flags := "-s -w " + linker(p.Linker, version)
	verb := []string{"build"}
	if p.Test {
		verb = []string{"test", "-c", "-vet=off"} // vet would take as long as the build
	}
	command := b.command(ctx, p.Module, p.CGO, append(verb, "-trimpath", "-buildvcs=false",
		"-tags", p.Tags, "-ldflags", flags, "-o", target, p.Package)...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", p.Name, err, output)
	}
	if err := os.Rename(target, made); err != nil {
		return fmt.Errorf("building %s: %w", p.Name, err)
	}
	return os.WriteFile(stampPath, []byte(stamp), 0o644) //nolint:gosec // not a secret
}

// buildOwn builds programs of the project with one command. The Go tool skips those that are up to date.
func (b *Builder) buildOwn(ctx context.Context, programs []Program) error {
	if len(programs) == 0 {
		return nil
	}
	directory := b.Path(".own")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("building the programs of the project: %w", err)
	}
	arguments := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", directory + "/"}
	for _, p := range programs {
		arguments = append(arguments, p.Package)
	}
	if output, err := b.command(ctx, ".", false, arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("building the programs of the project: %w\n%s", err, output)
	}
	for _, p := range programs {
		if err := ReplaceLink(filepath.Join(directory, filepath.Base(p.Package)), b.Path(p.Name)); err != nil {
			return fmt.Errorf("building %s: %w", p.Name, err)
		}
	}
	return nil
}

// ReplaceLink replaces a path by a hard link to another file. It does not affect a process that runs the old file.
func ReplaceLink(made, path string) error {
	wanted, err := os.Stat(made)
	if err != nil {
		return err
	}
	if existing, err := os.Stat(path); err == nil && os.SameFile(existing, wanted) {
		return nil
	}
	next := path + ".next"
	if err := errors.Join(ignoreMissing(os.Remove(next)), os.Link(made, next)); err != nil {
		return err
	}
	return os.Rename(next, path)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func linker(flags, version string) string {
	parts := append(strings.Split(strings.TrimPrefix(version, "v"), "."), "", "")
	return strings.NewReplacer("$VERSION", version, "$MAJOR", parts[0], "$MINOR", parts[1]).Replace(flags)
}

func (b *Builder) upToDate(p Program, stamp string) bool {
	content, err := os.ReadFile(b.stampPath(p))
	if err != nil || string(content) != stamp {
		return false
	}
	_, err = os.Stat(b.Path(p.Name))
	return err == nil
}

func (b *Builder) stampPath(p Program) string {
	return b.Path(filepath.Join(".stamps", strings.ReplaceAll(p.Name, "/", "_")))
}

// stamp returns a text that changes when a program has to be rebuilt.
func (b *Builder) stamp(p Program) (string, error) {
	h := sha256.New()
	files, err := filepath.Glob(filepath.Join(b.Root, p.Module, "*.go"))
	if err != nil {
		return "", fmt.Errorf("checking whether %s is built: %w", p.Name, err)
	}
	for _, file := range append(files, filepath.Join(b.Root, p.Module, "go.mod"), filepath.Join(b.Root, p.Module, "go.sum")) {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("checking whether %s is built: %w", p.Name, err)
		}
		h.Write(content)
	}
	version, err := Version(b.Root, p.Module, p.From)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s/%s %q %q %s\n", version, runtime.GOOS, runtime.GOARCH, p.Tags, p.Linker, hex.EncodeToString(h.Sum(nil))), nil
}

// Version returns the version of a module that the go.mod file in a directory of the repository requires.
func Version(root, directory, module string) (string, error) {
	path := filepath.Join(root, directory, "go.mod")
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("finding the version of %s: %w", module, err)
	}
	for line := range bytes.Lines(content) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(string(line)), "require "))
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", path, module)
}

// command runs the Go tool with low priority: a build must not slow down other programs on this machine.
func (b *Builder) command(ctx context.Context, module string, cgo bool, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "nice", append([]string{"-n", "10", b.Go}, arguments...)...) //nolint:gosec // the arguments are pinned
	command.Dir = filepath.Join(b.Root, module)
	command.Env = append(os.Environ(), "CGO_ENABLED="+map[bool]string{true: "1", false: "0"}[cgo])
	return command
}
