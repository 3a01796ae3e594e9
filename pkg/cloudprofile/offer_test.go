package cloudprofile

import (
	"testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestRuns checks which images run on which machines, with and without capabilities.
func TestRuns(t *testing.T) {
	t.Parallel()
	plain := &corev1beta1.CloudProfileSpec{}
	capable := parse[corev1beta1.CloudProfileSpec](t, `machineCapabilities: [{name: architecture, values: [amd64, arm64]}, {name: boot, values: [uefi, bios]}]`)
	for name, test := range map[string]struct {
		spec                  *corev1beta1.CloudProfileSpec
		version, machine, cpu string
		want                  bool
	}{
		"no architecture is amd64":  {plain, `{}`, `{}`, "amd64", true},
		"no architecture":           {plain, `{}`, `{}`, "arm64", false},
		"another architecture":      {plain, `{architectures: [amd64]}`, `{}`, "arm64", false},
		"no flavor runs everywhere": {capable, `{}`, `{capabilities: {boot: [bios]}}`, "arm64", true},
		"a flavor":                  {capable, `{capabilityFlavors: [{architecture: [arm64], boot: [bios]}, {architecture: [amd64]}]}`, `{capabilities: {boot: [uefi]}}`, "amd64", true},
		"no flavor has both":        {capable, `{capabilityFlavors: [{architecture: [arm64], boot: [uefi]}, {architecture: [amd64], boot: [bios]}]}`, `{capabilities: {boot: [uefi]}}`, "amd64", false},
	} {
		got := Runs(test.spec, parse[corev1beta1.MachineImageVersion](t, test.version), parse[corev1beta1.MachineType](t, test.machine), test.cpu)
		if got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for parts, want := range map[string]bool{"": true, "1": true, "1.34": true, "1.34.7": true, "1.3": false, "1.34.71": false, "2": false} {
		if got := Matches("1.34.7", parts); got != want {
			t.Errorf("%q: %t", parts, got)
		}
	}
}
