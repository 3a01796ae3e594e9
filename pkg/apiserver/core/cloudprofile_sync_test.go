package core

import (
	"testing"

	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestSyncArchitectures tests how a write synchronizes the architectures in a CloudProfile with its capabilities.
func TestSyncArchitectures(t *testing.T) {
	t.Parallel()
	const (
		capabilities = "machineCapabilities: [{name: architecture, values: [amd64, arm64]}], "
		one          = "machineCapabilities: [{name: architecture, values: [arm64]}], "
	)
	spec := func(capabilities, machine, version string) string {
		return "{" + capabilities + "machineTypes: [{name: a" + machine + "}], machineImages: [{name: a, versions: [{version: '1'" + version + "}]}]}"
	}
	const amd, arm, flavors = ", capabilities: {architecture: [amd64]}", ", capabilities: {architecture: [arm64]}", ", capabilityFlavors: [{architecture: [arm64]}, {architecture: [amd64]}]"
	for name, test := range map[string]struct{ old, updated, want string }{
		"without capabilities":         {spec("", "", ""), spec("", ", architecture: arm64", ", architectures: [arm64]"), spec("", ", architecture: arm64", ", architectures: [arm64]")},
		"architectures are filled":     {spec(capabilities, "", ""), spec(capabilities, amd, flavors), spec(capabilities, ", architecture: amd64"+amd, ", architectures: [amd64, arm64]"+flavors)},
		"one architecture is defined":  {spec(one, "", ""), spec(one, "", ""), spec(one, ", architecture: arm64", ", architectures: [arm64]")},
		"architectures follow":         {spec(capabilities, ", architecture: amd64"+amd, ", architectures: [amd64]"), spec(capabilities, ", architecture: amd64"+arm, ", architectures: [amd64]"+flavors), spec(capabilities, ", architecture: arm64"+arm, ", architectures: [amd64, arm64]"+flavors)},
		"contradictions are left":      {spec(capabilities, ", architecture: amd64"+amd, ", architectures: [amd64]"), spec(capabilities, ", architecture: arm64"+amd, ", architectures: [arm64]"+flavors), spec(capabilities, ", architecture: arm64"+amd, ", architectures: [arm64]"+flavors)},
		"capabilities are removed":     {spec(capabilities, ", architecture: amd64"+amd, ", architectures: [amd64, arm64]"+flavors), spec("", ", architecture: amd64"+amd, ", architectures: [amd64, arm64]"+flavors), spec("", ", architecture: amd64", ", architectures: [amd64, arm64]")},
		"new machine states nothing":   {"{}", spec(capabilities, "", flavors), spec(capabilities, ", architecture: amd64"+amd, ", architectures: [amd64, arm64]"+flavors)},
		"new machine of the only one":  {"{}", spec(one, "", ""), spec(one, ", architecture: arm64"+arm, ", architectures: [arm64]")},
		"new profile has capabilities": {spec("", ", architecture: amd64", ", architectures: [arm64, amd64]"), spec(capabilities, ", architecture: amd64", ", architectures: [arm64, amd64]"), spec(capabilities, ", architecture: amd64"+amd, ", architectures: [arm64, amd64]"+flavors)},
	} {
		old, updated, want := profileSpec(t, test.old), profileSpec(t, test.updated), profileSpec(t, test.want)
		if syncArchitectures(updated, old); differ(updated, want) {
			got, _ := yaml.Marshal(updated) // only for the message
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

func profileSpec(t *testing.T, text string) *gardencorev1beta1.CloudProfileSpec {
	t.Helper()
	spec := &gardencorev1beta1.CloudProfileSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}
