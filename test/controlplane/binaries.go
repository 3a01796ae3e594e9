package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	modulePath = "github.com/trellis-k8s/trellis"
	assetsEnv  = "KUBEBUILDER_ASSETS"
)

// RepositoryRoot returns the directory with the go.mod of this module, which is the working directory or one above it.
func RepositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("finding the repository: %w", err)
		}
		if first, _, _ := strings.Cut(string(content), "\n"); strings.TrimSpace(first) == "module "+modulePath {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the repository: neither %s nor a directory above it holds the go.mod of %s", start, modulePath)
		}
	}
}

// binaries finds the programs of the control plane.
type binaries struct {
	dirs []string
}

func newBinaries() (*binaries, error) {
	b := &binaries{}
	if assets := os.Getenv(assetsEnv); assets != "" {
		b.dirs = append(b.dirs, assets)
	}
	root, err := RepositoryRoot()
	if err != nil {
		return nil, err
	}
	b.dirs = append(b.dirs, filepath.Join(root, "bin"))
	return b, nil
}

// find returns the path of a program, or of a directory of files that a program needs.
func (b *binaries) find(name string) (string, error) {
	for _, dir := range b.dirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not in %s: run `make controlplane`, which builds it", name, strings.Join(b.dirs, " or "))
}
