package apiserver

import (
	"os"
	"slices"
	"strings"
	"testing"

	genericoptions "k8s.io/apiserver/pkg/server/options"
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

// TestOrderOfPlugins compares the plugins, their order, and those that are off by default with Gardener's. The presets run where they did
// before Gardener removed them.
func TestOrderOfPlugins(t *testing.T) {
	t.Parallel()
	want := []string{
		"ResourceReferenceManager", "ExtensionValidator", "ExtensionLabels", "ShootTolerationRestriction", "ShootExposureClass", "ShootDNS", "ShootManagedSeed",
		"-ShootNodeLocalDNSEnabledByDefault", "-ShootDNSRewriting", "ShootQuotaValidator", "ShootMutator", "ShootValidator", "SeedValidator", "SeedMutator",
		"ControllerRegistrationResources", "NamespacedCloudProfileValidator", "ProjectMutator", "DeletionConfirmation", "FinalizerRemoval",
		"OpenIDConnectPreset", "ClusterOpenIDConnectPreset", "CustomVerbAuthorizer", "-ShootVPAEnabledByDefault", "ShootResourceReservation", "ManagedSeed",
		"ManagedSeedShoot", "Bastion", "BackupBucketValidator",
	}
	options := genericoptions.NewRecommendedOptions("", nil)
	registerAdmission(options, storages{})
	var got []string
	for _, name := range options.Admission.RecommendedPluginOrder {
		if !slices.ContainsFunc(plugins, func(one row) bool { return one.Name == name }) {
			continue // of the library
		}
		if options.Admission.DefaultOffPlugins.Has(name) {
			name = "-" + name
		}
		got = append(got, name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got the plugins\n%q, want\n%q (- is off by default)", got, want)
	}
}
