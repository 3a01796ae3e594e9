package cloudprofilestatus

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const profile = `
kubernetes:
  versions:
  - {version: 1.36.0, classification: preview}
  - {version: 1.35.0, lifecycle: [{classification: preview, startTime: "2027-01-01T00:00:00Z"}, {classification: supported, startTime: "2027-03-01T00:00:00Z"}]}
  - {version: 1.34.0}
  - {version: 1.33.0, classification: deprecated, expirationDate: "2027-02-01T00:00:00Z"}
machineImages:
- name: linux
  versions: [{version: 1.0.0, expirationDate: "2027-04-01T00:00:00Z"}, {version: 1.1.0, lifecycle: [{classification: supported}]}]
- name: empty
`

// TestDecide goes through a year from change to change.
func TestDecide(t *testing.T) {
	t.Parallel()
	spec := &corev1beta1.CloudProfileSpec{}
	if err := yaml.UnmarshalStrict([]byte(profile), spec); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, want := range []string{
		"1.36.0 preview, 1.35.0 unavailable, 1.34.0 supported, 1.33.0 deprecated; linux: 1.0.0 supported, 1.1.0 supported; empty: ; 2027-01-01",
		"1.36.0 preview, 1.35.0 preview, 1.34.0 supported, 1.33.0 deprecated; linux: 1.0.0 supported, 1.1.0 supported; empty: ; 2027-02-01",
		"1.36.0 preview, 1.35.0 preview, 1.34.0 supported, 1.33.0 expired; linux: 1.0.0 supported, 1.1.0 supported; empty: ; 2027-03-01",
		"1.36.0 preview, 1.35.0 supported, 1.34.0 supported, 1.33.0 expired; linux: 1.0.0 supported, 1.1.0 supported; empty: ; 2027-04-01",
		"1.36.0 preview, 1.35.0 supported, 1.34.0 supported, 1.33.0 expired; linux: 1.0.0 expired, 1.1.0 supported; empty: ; never",
	} {
		status, next := Decide(spec, now)
		got := textOf(status.Kubernetes.Versions) + "; "
		for _, image := range status.MachineImages {
			got += image.Name + ": " + textOf(image.Versions) + "; "
		}
		if next.IsZero() {
			got += "never"
		} else {
			got += next.Format(time.DateOnly)
		}
		if got != want {
			t.Errorf("at %s:\n%s, want\n%s", now.Format(time.DateOnly), got, want)
		}
		now = next
	}
}

func textOf(versions []corev1beta1.ExpirableVersionStatus) string {
	var texts []string
	for _, version := range versions {
		texts = append(texts, version.Version+" "+string(version.Classification))
	}
	return strings.Join(texts, ", ")
}
