package apiserver

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPluginsAndPackages checks that each package of a plugin is in the table once, with a reason.
func TestPluginsAndPackages(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("../admission")
	if err != nil {
		t.Fatal(err)
	}
	var packages, names []string
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != "admissiontest" {
			packages = append(packages, entry.Name())
		}
	}
	for _, row := range plugins {
		names = append(names, strings.ToLower(row.Name))
		if row.why == "" {
			t.Errorf("the plugin %s has no reason", row.Name)
		}
		if (len(row.Rules) == 0) == (row.Configure == nil) {
			t.Errorf("the plugin %s needs either rules or a configuration", row.Name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, packages) {
		t.Errorf("the table has the plugins %v, but the packages are %v", names, packages)
	}
}
