// Package inplace updates a machine that is not replaced: its operating system, a minor version of kubelet or settings of kubelet for which its
// Pods must be gone, and its credentials. machine-controller-manager removes the Pods before, says so in a condition of the Node, and reads the
// result from a label.
package inplace

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// The signs of machine-controller-manager and of node agents on a Node.
const (
	// Condition with ReasonReady says that the Pods of the Node are gone, so that it may be updated.
	Condition   = corev1.NodeConditionType("InPlaceUpdate")
	ReasonReady = "ReadyForUpdate"
	// LabelResult is the result of the update, Successful or Failed. AnnotationReason says why it failed.
	LabelResult      = "node.machine.sapcloud.io/update-result"
	Successful       = "successful"
	Failed           = "failed"
	AnnotationReason = "node.machine.sapcloud.io/update-failed-reason"
	// AnnotationVersion is the version of the operating system to which the node is being updated.
	AnnotationVersion = "node-agent.gardener.cloud/updating-operating-system-version"
)

// Updates are what changes in place with a configuration.
type Updates struct {
	// OperatingSystem is the new version of the operating system, empty if it stays.
	OperatingSystem string `json:"operatingSystem,omitempty"`
	// Kubelet is set for another minor version or other settings for which Pods must be gone.
	Kubelet bool `json:"kubelet,omitempty"`
	// Authorities is set if the certificate authorities were rotated, and ServiceAccountKey if the key for tokens was.
	Authorities       bool `json:"authorities,omitempty"`
	ServiceAccountKey bool `json:"serviceAccountKey,omitempty"`
}

// Any reports whether anything changes.
func (u Updates) Any() bool { return u != Updates{} }

// and adds what is needed for the next configuration to updates that were begun. Which operating system runs decides alone whether it has to be
// updated.
func (u Updates) and(needed Updates) Updates {
	return Updates{
		OperatingSystem: needed.OperatingSystem, Kubelet: u.Kubelet || needed.Kubelet,
		Authorities: u.Authorities || needed.Authorities, ServiceAccountKey: u.ServiceAccountKey || needed.ServiceAccountKey,
	}
}

// String names what changes.
func (u Updates) String() string {
	var parts []string
	if u.OperatingSystem != "" {
		parts = append(parts, "operating system "+u.OperatingSystem)
	}
	for _, part := range []struct {
		name string
		set  bool
	}{{"kubelet", u.Kubelet}, {"certificate authorities", u.Authorities}, {"service account key", u.ServiceAccountKey}} {
		if part.set {
			parts = append(parts, part.name)
		}
	}
	return strings.Join(parts, ", ")
}

// Needed returns what changes in place from the configuration that was applied last to another one. version is that of the operating system that
// runs. A new machine, and one that is replaced instead, needs nothing.
func Needed(wanted, last *osc.Config, version string) (Updates, error) {
	if wanted == nil || last == nil || wanted.InPlaceUpdates == nil || last.InPlaceUpdates == nil {
		return Updates{}, nil
	}
	to, from := wanted.InPlaceUpdates, last.InPlaceUpdates
	updates := Updates{
		Authorities:       !rotation(to, authorities).Equal(rotation(from, authorities)),
		ServiceAccountKey: !rotation(to, serviceAccountKey).Equal(rotation(from, serviceAccountKey)),
	}
	if to.OperatingSystemVersion != version {
		updates.OperatingSystem = to.OperatingSystemVersion
	}
	minors, err := otherMinor(to.KubeletVersion, from.KubeletVersion)
	if err != nil {
		return Updates{}, err
	}
	settings, err := otherSettings(wanted, last)
	if err != nil {
		return Updates{}, err
	}
	updates.Kubelet = minors || settings
	return updates, nil
}

func authorities(c *extensionsv1alpha1.CredentialsRotation) *metav1.Time {
	if c.CertificateAuthorities == nil {
		return nil
	}
	return c.CertificateAuthorities.LastInitiationTime
}

func serviceAccountKey(c *extensionsv1alpha1.CredentialsRotation) *metav1.Time {
	if c.ServiceAccountKey == nil {
		return nil
	}
	return c.ServiceAccountKey.LastInitiationTime
}

// rotation returns when a rotation of credentials was started last, or nil.
func rotation(of *extensionsv1alpha1.InPlaceUpdates, kind func(*extensionsv1alpha1.CredentialsRotation) *metav1.Time) *metav1.Time {
	if of.CredentialsRotation == nil {
		return nil
	}
	return kind(of.CredentialsRotation)
}

// otherMinor reports whether two versions of kubelet differ in more than the patch.
func otherMinor(a, b string) (bool, error) {
	var versions [2]*semver.Version
	for i, text := range []string{a, b} {
		version, err := semver.NewVersion(text)
		if err != nil {
			return false, fmt.Errorf("inPlaceUpdates.kubelet is %q: %w", text, err)
		}
		versions[i] = version
	}
	return versions[0].Major() != versions[1].Major() || versions[0].Minor() != versions[1].Minor(), nil
}

// settings are the settings of kubelet that change what Pods get of a node (Gardener).
type settings struct {
	EvictionHard     map[string]string `json:"evictionHard"`
	KubeReserved     map[string]string `json:"kubeReserved"`
	CPUManagerPolicy string            `json:"cpuManagerPolicy"`
}

// otherSettings reports whether these settings differ.
func otherSettings(wanted, last *osc.Config) (bool, error) {
	var both [2]settings
	for i, config := range []*osc.Config{wanted, last} {
		for _, file := range config.Files {
			if file.Path != paths.KubeletConfig || file.Content.Inline == nil {
				continue
			}
			content, err := osc.Inline(file.Content.Inline)
			if err == nil {
				err = yaml.Unmarshal(content, &both[i])
			}
			if err != nil {
				return false, fmt.Errorf("the configuration of kubelet in %s: %w", file.Path, err)
			}
		}
	}
	return !reflect.DeepEqual(both[0], both[1]), nil
}

// MayBegin reports whether a node may be updated: its Pods are gone, or the last update failed.
func MayBegin(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	result := node.Labels[LabelResult]
	for _, condition := range node.Status.Conditions {
		if condition.Type == Condition && condition.Reason == ReasonReady {
			return result != Successful // machine-controller-manager has not ended the last update yet
		}
	}
	return result == Failed
}

var (
	prettyName = regexp.MustCompile(`(?m)^PRETTY_NAME=(.*)$`)
	version    = regexp.MustCompile(`[0-9]+(\.[0-9]+)*`)
)

// VersionOf returns the version of an operating system, from the name in its file os-release (Gardener).
func VersionOf(release []byte) (string, error) {
	line := prettyName.FindSubmatch(release)
	if line == nil {
		return "", fmt.Errorf("%s has no PRETTY_NAME", paths.Release)
	}
	found := version.Find(line[1])
	if found == nil {
		return "", fmt.Errorf("PRETTY_NAME in %s is %s: it has no version", paths.Release, line[1])
	}
	return string(found), nil
}
