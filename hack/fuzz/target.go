package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// target is a fuzz test.
type target struct {
	// Package is its directory below the root of the repository.
	Package string `json:"package"`
	Name    string `json:"name"`
}

// String returns "<directory>.<name>".
func (t target) String() string { return filepath.ToSlash(t.Package) + "." + t.Name }

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// find returns the fuzz tests of the module below a directory whose names match, sorted by file.
func find(root string, selected *regexp.Regexp) ([]target, error) {
	var targets []target
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(root, path, entry.Name())
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(path) //nolint:gosec // it is a file of this repository
		if err != nil {
			return err
		}
		directory, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, match := range declaration.FindAllSubmatch(content, -1) {
			if found := (target{directory, string(match[1])}); selected.MatchString(found.String()) {
				targets = append(targets, found)
			}
		}
		return nil
	})
	return targets, err
}

// skip skips directories in which Go does not search for packages of this module.
func skip(root, path, name string) error {
	if path == root {
		return nil
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	if name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || err == nil {
		return filepath.SkipDir
	}
	return nil
}
