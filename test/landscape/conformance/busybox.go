package conformance

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
)

// Shell copies the program bash, which needs no libraries, from an archive of Debian's root file system to a file, unless it exists.
func Shell(debian, target string) error {
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	if err := extract(debian, "bin/bash-static", target); err != nil {
		return fmt.Errorf("extracting bash: %w", err)
	}
	return nil
}

// Busybox copies the program busybox from an archive of Debian's root file system to a file, unless it exists, and returns its commands.
func Busybox(ctx context.Context, debian, target string) (applets []string, err error) {
	if _, err := os.Stat(target); err != nil {
		if err := extract(debian, "bin/busybox", target); err != nil {
			return nil, fmt.Errorf("extracting busybox: %w", err)
		}
	}
	output, err := exec.CommandContext(ctx, target, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the commands of busybox: %w", err)
	}
	return strings.Fields(string(output)), nil
}

// extract writes the program with this path, with or without the directory usr, to an executable file.
func extract(archive, name, target string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	for reader := tar.NewReader(f); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s does not contain %s", archive, name)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", archive, err)
		}
		if header.Typeflag != tar.TypeReg || strings.TrimPrefix(path.Clean("/"+header.Name), "/usr") != "/"+name {
			continue
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return fmt.Errorf("reading %s: %w", archive, err)
		}
		next := target + ".next"
		if err := os.WriteFile(next, content, 0o755); err != nil { //nolint:gosec // a program
			return err
		}
		return os.Rename(next, target)
	}
}
