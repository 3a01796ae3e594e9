package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
)

// coverEnv is the directory in which processes record the covered statements below cmd and pkg, for make coverage. They
// do so when they exit on their own.
const coverEnv = "PROCESSES_COVERDIR"

// Covered reports whether programs are built with coverage.
func Covered() bool { return os.Getenv(coverEnv) != "" }

// BuildProgram builds a program of this repository into bin/test, and returns its path. App is the type Program of the
// package app of the program, for example of cmd/gardenlet/app. So a test package that runs a program imports it, and go
// test does not answer from its cache when the program has changed. The version of the program is v0.0.0-test. Packages
// are tested concurrently: each builds its own copy and moves it to the common path atomically. An up-to-date copy is not
// linked again.
func BuildProgram[App any]() (string, error) {
	source, err := sourceOf(reflect.TypeFor[App]())
	if err != nil {
		return "", err
	}
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}
	directory := filepath.Join(root, "bin", "test")
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return "", err
	}
	path := filepath.Join(directory, filepath.Base(source))
	own := fmt.Sprintf("%s-%d", path, os.Getpid())
	if err := os.Link(path, own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	defer os.Remove(own) //nolint:errcheck // it exists only after an error
	arguments := []string{"build", "-C", root, "-buildvcs=false", "-ldflags", "-X main.version=v0.0.0-test", "-o", own}
	if Covered() {
		arguments = append(arguments, "-cover", "-covermode=atomic", "-coverpkg=./cmd/...,./pkg/...")
		if err := os.Setenv("GOCOVERDIR", os.Getenv(coverEnv)); err != nil { // go test has set it to one that it deletes
			return "", err
		}
	}
	output, err := exec.CommandContext(context.Background(), "go", append(arguments, source)...).CombinedOutput() //nolint:gosec // of a test
	if err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", source, err, output)
	}
	return path, os.Rename(own, path)
}

// sourceOf returns the main package of the program with a type in its package app, relative to the repository.
func sourceOf(app reflect.Type) (string, error) {
	source, inRepository := strings.CutPrefix(app.PkgPath(), modulePath+"/")
	source, isApp := strings.CutSuffix(source, "/app")
	if !inRepository || !isApp {
		return "", fmt.Errorf("%s is in %q, but must be in the package app of a program of this repository", app, app.PkgPath())
	}
	return "./" + source, nil
}
