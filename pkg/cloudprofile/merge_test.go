package cloudprofile

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// parent is a CloudProfile without capabilities; capable defines some.
const (
	parent = `
type: local
kubernetes:
  versions:
  - {version: 1.34.2, classification: supported}
  - {version: 1.33.4, classification: deprecated, expirationDate: "2027-06-30T00:00:00Z"}
  - {version: 1.32.9, lifecycle: [{classification: supported}, {classification: expired, startTime: "2027-01-01T00:00:00Z"}]}
machineImages:
- name: linux
  updateStrategy: minor
  versions:
  - {version: 1.2.0, architectures: [arm64], cri: [{name: containerd}]}
  - {version: 1.1.0, architectures: [amd64], cri: [{name: containerd}], classification: deprecated}
machineTypes: [{name: medium, cpu: "2", gpu: "0", memory: 8Gi, usable: true, architecture: amd64}]
volumeTypes: [{name: fast, class: premium, usable: true}]
regions: [{name: here}]
`
	capable = `
type: local
kubernetes: {versions: [{version: 1.34.2}]}
machineCapabilities: [{name: architecture, values: [amd64, arm64]}]
machineImages: [{name: linux, updateStrategy: minor, versions: [{version: 1.2.0, architectures: [arm64], cri: [{name: containerd}], capabilityFlavors: [{architecture: [arm64]}]}]}]
machineTypes: [{name: medium, cpu: "2", gpu: "0", memory: 8Gi, usable: true, architecture: amd64, capabilities: {architecture: [amd64]}}]
regions: [{name: here}]
`
)

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	into := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return into
}

// TestMerge changes one part of the parent in each case. Each wanted text replaces the fields that it has, at the top level.
func TestMerge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ parent, own, want string }{
		"nothing": {parent, `{}`, `{}`},
		"a later expiration": {parent, `kubernetes: {versions: [{version: 1.33.4, expirationDate: "2028-01-01T00:00:00Z"}]}`, `
kubernetes:
  versions:
  - {version: 1.34.2, classification: supported}
  - {version: 1.33.4, classification: deprecated, expirationDate: "2028-01-01T00:00:00Z"}
  - {version: 1.32.9, lifecycle: [{classification: supported}, {classification: expired, startTime: "2027-01-01T00:00:00Z"}]}`},
		"a later end of a lifecycle": {parent, `kubernetes: {versions: [{version: 1.32.9, expirationDate: "2028-01-01T00:00:00Z"}]}`, `
kubernetes:
  versions:
  - {version: 1.34.2, classification: supported}
  - {version: 1.33.4, classification: deprecated, expirationDate: "2027-06-30T00:00:00Z"}
  - {version: 1.32.9, lifecycle: [{classification: supported}, {classification: expired, startTime: "2028-01-01T00:00:00Z"}]}`},
		"a lifecycle": {parent, `kubernetes: {versions: [{version: 1.33.4, lifecycle: [{classification: supported}]}]}`, `
kubernetes:
  versions:
  - {version: 1.34.2, classification: supported}
  - {version: 1.33.4, lifecycle: [{classification: supported}]}
  - {version: 1.32.9, lifecycle: [{classification: supported}, {classification: expired, startTime: "2027-01-01T00:00:00Z"}]}`},
		"a version that the parent does not have": {parent, `kubernetes: {versions: [{version: 1.31.0, expirationDate: "2028-01-01T00:00:00Z"}]}`, `{}`},
		"the expiration of a version of an image": {parent, `machineImages: [{name: linux, versions: [{version: 1.1.0, expirationDate: "2028-01-01T00:00:00Z"}]}]`, `
machineImages:
- name: linux
  updateStrategy: minor
  versions:
  - {version: 1.2.0, architectures: [arm64], cri: [{name: containerd}]}
  - {version: 1.1.0, architectures: [amd64], cri: [{name: containerd}], classification: deprecated, expirationDate: "2028-01-01T00:00:00Z"}`},
		"another version of the same name": {parent, `machineImages: [{name: linux, updateStrategy: patch, versions: [{version: 1.2.0, architectures: [amd64]}, {version: 1.3.0}]}]`, `
machineImages:
- name: linux
  updateStrategy: patch
  versions:
  - {version: 1.2.0, architectures: [amd64], cri: [{name: containerd}]}
  - {version: 1.1.0, architectures: [amd64], cri: [{name: containerd}], classification: deprecated}
  - {version: 1.3.0, architectures: [amd64], cri: [{name: containerd}]}`},
		"an image of its own, in the way of profiles with capabilities": {parent, `machineImages: [{name: own, versions: [{version: 1.0.0, capabilityFlavors: [{architecture: [arm64]}]}]}]`, `
machineImages:
- name: linux
  updateStrategy: minor
  versions:
  - {version: 1.2.0, architectures: [arm64], cri: [{name: containerd}]}
  - {version: 1.1.0, architectures: [amd64], cri: [{name: containerd}], classification: deprecated}
- {name: own, updateStrategy: major, versions: [{version: 1.0.0, architectures: [arm64], cri: [{name: containerd}]}]}`},
		"machine types": {parent, `machineTypes: [{name: big, cpu: "8", gpu: "0", memory: 32Gi, capabilities: {architecture: [arm64]}}, {name: medium, cpu: "3", gpu: "0", memory: 8Gi}]`, `
machineTypes:
- {name: medium, cpu: "3", gpu: "0", memory: 8Gi, usable: true, architecture: amd64}
- {name: big, cpu: "8", gpu: "0", memory: 32Gi, usable: true, architecture: arm64}`},
		"volume types": {parent, `volumeTypes: [{name: slow, class: standard}, {name: fast, class: standard}]`, `
volumeTypes: [{name: fast, class: standard, usable: true}, {name: slow, class: standard, usable: true}]`},
		"limits and certificates": {parent, `{limits: {maxNodesTotal: 10}, caBundle: own, providerConfig: {kind: Ignored}}`, `{limits: {maxNodesTotal: 10}, caBundle: own}`},
		"limits and certificates of both": {parent + "limits: {maxNodesTotal: 5}\ncaBundle: |\n  parent\n", `{limits: {maxNodesTotal: 10}, caBundle: own}`,
			`{limits: {maxNodesTotal: 10}, caBundle: "parent\nown"}`},
		"no limit": {parent + "limits: {maxNodesTotal: 5}\n", `limits: {maxNodesTotal: 0}`, `{}`},
		"architectures in a profile with capabilities": {capable, `
machineImages: [{name: linux, versions: [{version: 1.2.0, expirationDate: "2028-01-01T00:00:00Z"}, {version: 1.3.0, architectures: [amd64]}]}]
machineTypes: [{name: big, cpu: "8", gpu: "0", memory: 32Gi, architecture: arm64}]`, `
machineImages:
- name: linux
  updateStrategy: minor
  versions:
  - {version: 1.2.0, expirationDate: "2028-01-01T00:00:00Z", architectures: [arm64], cri: [{name: containerd}], capabilityFlavors: [{architecture: [arm64]}]}
  - {version: 1.3.0, architectures: [amd64], cri: [{name: containerd}], capabilityFlavors: [{architecture: [amd64]}]}
machineTypes:
- {name: medium, cpu: "2", gpu: "0", memory: 8Gi, usable: true, architecture: amd64, capabilities: {architecture: [amd64]}}
- {name: big, cpu: "8", gpu: "0", memory: 32Gi, usable: true, architecture: arm64, capabilities: {architecture: [arm64]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, own := parse[corev1beta1.CloudProfileSpec](t, test.parent), parse[corev1beta1.NamespacedCloudProfileSpec](t, test.own)
			fields := parse[map[string]any](t, test.parent)
			for field, value := range *parse[map[string]any](t, test.want) {
				(*fields)[field] = value
			}
			text, err := yaml.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			got, want := Merge(base, own), parse[corev1beta1.CloudProfileSpec](t, string(text))
			if !equality.Semantic.DeepEqual(&got, want) {
				text, _ := yaml.Marshal(got) // only for the message
				t.Errorf("got:\n%s", text)
			}
			if !equality.Semantic.DeepEqual(base, parse[corev1beta1.CloudProfileSpec](t, test.parent)) ||
				!equality.Semantic.DeepEqual(own, parse[corev1beta1.NamespacedCloudProfileSpec](t, test.own)) {
				t.Error("an argument has changed")
			}
		})
	}
}

func TestReferenceOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]corev1beta1.CloudProfileReference{
		`{cloudProfileName: a}`: {Kind: "CloudProfile", Name: "a"},
		`{}`:                    {Kind: "CloudProfile"},
		`{cloudProfileName: a, cloudProfile: {kind: NamespacedCloudProfile, name: b}}`: {Kind: "NamespacedCloudProfile", Name: "b"},
	} {
		if got := ReferenceOf(parse[corev1beta1.ShootSpec](t, text)); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
