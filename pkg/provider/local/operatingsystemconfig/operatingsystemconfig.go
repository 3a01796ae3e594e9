// Package operatingsystemconfig converts units and files into the user data that machines execute on their first boot.
// Machines run Debian with systemd.
package operatingsystemconfig

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// FlowName distinguishes the ManagedResources of OperatingSystemConfigs from others of the extension.
const FlowName = "operatingsystemconfig"

const (
	// prefixSecret is the prefix of the names of Secrets with user data.
	prefixSecret = "osc-result-" //nolint:gosec // a name
	// KeyUserData is the key of the user data in these Secrets.
	KeyUserData = "cloud_config"
)

// New returns the actuator. uncached reads Secrets, which are not cached.
func New(deployer *bundles.Deployer, uncached client.Reader) *bundles.Actuator[*extensionsv1alpha1.OperatingSystemConfig] {
	plan := func(ctx context.Context, object *extensionsv1alpha1.OperatingSystemConfig, _ *extension.Cluster) (flow.Plan, error) {
		secrets := func(name string) (map[string][]byte, error) {
			secret := &corev1.Secret{}
			err := uncached.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: name}, secret)
			return secret.Data, err
		}
		return Plan(object, secrets)
	}
	return bundles.NewActuator(deployer, FlowName, plan)
}

// Plan returns the bundle of an OperatingSystemConfig, and sets the status for its purpose: a reference to the user data,
// or the units that this operating system requires in addition to those of gardenlet. secrets returns the data of a
// Secret in the namespace.
func Plan(object *extensionsv1alpha1.OperatingSystemConfig, secrets func(name string) (map[string][]byte, error)) (flow.Plan, error) {
	if object.Spec.Purpose == extensionsv1alpha1.OperatingSystemConfigPurposeReconcile {
		object.Status.ExtensionUnits, object.Status.InPlaceUpdates = extensionUnits(), inPlaceUpdates(object.Spec.InPlaceUpdates)
		return flow.Plan{}, nil
	}
	files, err := contents(object.Spec.Files, secrets)
	if err != nil {
		return flow.Plan{}, err
	}
	text, err := script(files, object.Spec.Units)
	if err != nil {
		return flow.Plan{}, extension.ConfigurationProblem(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: prefixSecret + object.Name},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{KeyUserData: []byte(text)},
	}
	bundle := bundles.Seed(object.Namespace, prefixSecret+object.Name)
	bundle.Objects = []client.Object{secret}
	object.Status.CloudConfig = &extensionsv1alpha1.CloudConfig{
		SecretRef: corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name},
	}
	return flow.Plan{Bundles: []flow.Bundle{bundle}}, nil
}

// contents returns the files with their contents resolved.
func contents(declared []extensionsv1alpha1.File, secrets func(name string) (map[string][]byte, error)) ([]file, error) {
	files := make([]file, 0, len(declared))
	for i, one := range declared {
		content, err := contentOf(one.Content, secrets)
		if err != nil {
			return nil, fmt.Errorf("spec.files[%d], %s: %w", i, one.Path, err)
		}
		f := file{path: one.Path, mode: defaultMode, content: content}
		if one.Permissions != nil {
			f.mode = *one.Permissions
		}
		if one.Content.TransmitUnencoded != nil {
			f.plain = *one.Content.TransmitUnencoded
		}
		if one.HostName != nil {
			f.host = *one.HostName
		}
		files = append(files, f)
	}
	return files, nil
}

// contentOf returns the content of a file.
func contentOf(content extensionsv1alpha1.FileContent, secrets func(name string) (map[string][]byte, error)) ([]byte, error) {
	switch {
	case content.Inline != nil && content.Inline.Encoding == "b64":
		decoded, err := base64.StdEncoding.DecodeString(content.Inline.Data)
		if err != nil {
			return nil, extension.ConfigurationProblem(fmt.Errorf("decode content.inline.data: %w", err))
		}
		return decoded, nil
	case content.Inline != nil:
		return []byte(content.Inline.Data), nil
	case content.SecretRef != nil:
		data, err := secrets(content.SecretRef.Name)
		if err != nil {
			return nil, fmt.Errorf("read Secret %s: %w", content.SecretRef.Name, err)
		}
		value, found := data[content.SecretRef.DataKey]
		if !found {
			return nil, fmt.Errorf("the Secret %s has no key %q", content.SecretRef.Name, content.SecretRef.DataKey)
		}
		return value, nil
	case content.ImageRef != nil:
		return nil, extension.ConfigurationProblem(fmt.Errorf(
			"content.imageRef cannot be used for the purpose provision, because no container runtime is available yet"))
	}
	return nil, extension.ConfigurationProblem(fmt.Errorf("content is empty: set inline or secretRef"))
}

// extensionUnits returns the units that a machine requires in addition to those of gardenlet. Users can only log in after
// their directories exist.
func extensionUnits() []extensionsv1alpha1.Unit {
	return []extensionsv1alpha1.Unit{{Name: "systemd-user-sessions.service", DropIns: []extensionsv1alpha1.DropIn{{
		Name:    "10-provider-local.conf",
		Content: "[Unit]\nWants=systemd-tmpfiles-setup.service\nAfter=systemd-tmpfiles-setup.service\n\n[Install]\nWantedBy=multi-user.target\n",
	}}}}
}

// inPlaceUpdates returns the command that updates the operating system of a running machine. It only writes the name of the version.
func inPlaceUpdates(wanted *extensionsv1alpha1.InPlaceUpdates) *extensionsv1alpha1.InPlaceUpdatesStatus {
	if wanted == nil {
		return nil
	}
	return &extensionsv1alpha1.InPlaceUpdatesStatus{OSUpdate: &extensionsv1alpha1.OSUpdate{
		Command: "sed", Args: []string{"-i", "-E", renames(wanted.OperatingSystemVersion), release},
	}}
}

// release is the file with the version of the operating system.
const release = "/etc/os-release"

// renames returns the expression for sed that writes a version of the machine image to the name of the operating system.
func renames(version string) string {
	return `s/^PRETTY_NAME=.*/PRETTY_NAME="Machine Image Version ` + version + `"/`
}

// WithVersion adds to the script of a new machine that its operating system has a version. The machine may be updated from it in place.
func WithVersion(script []byte, version string) []byte {
	return bytes.Replace(script, []byte(once), fmt.Appendf([]byte(once), "sed -i -E '%s' %s\n", renames(version), release), 1)
}
