// Package containerd renders the configuration files of containerd. All functions are pure.
package containerd

import (
	"bytes"
	"fmt"

	"github.com/BurntSushi/toml"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// Hosts returns the file hosts.toml of a registry (https://github.com/containerd/containerd/blob/main/docs/hosts.md).
func Hosts(registry *extensionsv1alpha1.RegistryConfig) []byte {
	var out bytes.Buffer
	if registry.Server != nil {
		fmt.Fprintf(&out, "server = %s\n", quote(*registry.Server))
	}
	// Not a map, because containerd asks the hosts in the order of the file.
	for _, host := range registry.Hosts {
		fmt.Fprintf(&out, "\n[host.%s]\n", quote(host.URL))
		capabilities := host.Capabilities
		if len(capabilities) == 0 {
			capabilities = []extensionsv1alpha1.RegistryCapability{extensionsv1alpha1.PullCapability, extensionsv1alpha1.ResolveCapability}
		}
		fmt.Fprintf(&out, "  capabilities = %s\n", list(capabilities))
		if len(host.CACerts) > 0 {
			fmt.Fprintf(&out, "  ca = %s\n", list(host.CACerts))
		}
		if ptr.Deref(host.OverridePath, false) {
			out.WriteString("  override_path = true\n")
		}
	}
	return out.Bytes()
}

func list[T ~string](values []T) string {
	var out bytes.Buffer
	out.WriteByte('[')
	for i, value := range values {
		if i > 0 {
			out.WriteString(", ")
		}
		out.WriteString(quote(string(value)))
	}
	out.WriteByte(']')
	return out.String()
}

// quote returns a TOML string.
func quote(text string) string {
	var out bytes.Buffer
	// A map with one string always has an encoding: "k = <string>".
	if err := toml.NewEncoder(&out).Encode(map[string]string{"k": text}); err != nil {
		return `""`
	}
	return string(bytes.TrimSpace(bytes.TrimPrefix(out.Bytes(), []byte("k ="))))
}
