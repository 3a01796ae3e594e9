package containerd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

const cniDirectory = "/opt/cni/bin"

// Plugins of containerd with the interface for kubelet, in the versions 1 and 2 of the configuration, and in 3 and 4.
const (
	pluginGRPC    = "io.containerd.grpc.v1.cri"
	pluginImages  = "io.containerd.cri.v1.images"
	pluginRuntime = "io.containerd.cri.v1.runtime"
)

// table is a table of TOML.
type table = map[string]any

// Config returns the configuration of containerd with the settings of the OperatingSystemConfig. before is config.toml of the machine. Everything
// else in it stays.
func Config(before []byte, cri *extensionsv1alpha1.CRIConfig) ([]byte, error) {
	config := table{}
	if err := toml.Unmarshal(before, &config); err != nil {
		return nil, fmt.Errorf("%s is not valid TOML: %w", paths.ContainerdConfig, err)
	}
	version, _ := config["version"].(int64)
	plugins, err := child(config, "plugins")
	if err != nil {
		return nil, err
	}
	imports, _ := config["imports"].([]any)
	if all := paths.ContainerdImports + "/*.toml"; !slices.Contains(imports, any(all)) {
		config["imports"] = append(imports, all)
	}
	if err := settings(plugins, version, cri); err != nil {
		return nil, err
	}
	for _, plugin := range cri.Containerd.Plugins {
		if err := apply(plugins, plugin); err != nil {
			return nil, fmt.Errorf("criConfig.containerd.plugins, path %s: %w", strings.Join(plugin.Path, "."), err)
		}
	}
	var out bytes.Buffer
	if err := toml.NewEncoder(&out).Encode(config); err != nil {
		return nil, fmt.Errorf("encode %s: %w", paths.ContainerdConfig, err)
	}
	return out.Bytes(), nil
}

// settings sets what the node agent always sets.
func settings(plugins table, version int64, cri *extensionsv1alpha1.CRIConfig) error {
	images, runtime := pluginImages, pluginRuntime
	sandbox, binaries := []string{"pinned_images", "sandbox"}, any([]string{cniDirectory})
	binariesKey := "bin_dirs"
	if version < 3 {
		images, runtime = pluginGRPC, pluginGRPC
		sandbox, binaries, binariesKey = []string{"sandbox_image"}, cniDirectory, "bin_dir"
	}
	systemd := ptr.Deref(cri.CgroupDriver, extensionsv1alpha1.CgroupDriverSystemd) == extensionsv1alpha1.CgroupDriverSystemd
	for _, one := range []struct {
		path  []string
		value any
	}{
		{[]string{images, "registry", "config_path"}, paths.ContainerdRegistries},
		{append([]string{images}, sandbox...), cri.Containerd.SandboxImage},
		{[]string{runtime, "containerd", "runtimes", "runc", "options", "SystemdCgroup"}, systemd},
		{[]string{runtime, "cni", binariesKey}, binaries},
	} {
		if err := set(plugins, one.path, one.value); err != nil {
			return err
		}
	}
	return nil
}

// apply adds or removes the settings of a plugin.
func apply(plugins table, plugin extensionsv1alpha1.PluginConfig) error {
	if ptr.Deref(plugin.Op, extensionsv1alpha1.AddPluginPathOperation) == extensionsv1alpha1.RemovePluginPathOperation {
		in := plugins
		for _, name := range plugin.Path[:len(plugin.Path)-1] {
			next, is := in[name].(table)
			if !is {
				return nil
			}
			in = next
		}
		delete(in, plugin.Path[len(plugin.Path)-1])
		return nil
	}
	values := table{}
	if plugin.Values != nil {
		decoder := json.NewDecoder(bytes.NewReader(plugin.Values.Raw))
		decoder.UseNumber()
		if err := decoder.Decode(&values); err != nil {
			return fmt.Errorf("values must be an object: %w", err)
		}
	}
	in := plugins
	for _, name := range plugin.Path {
		next, err := child(in, name)
		if err != nil {
			return err
		}
		in = next
	}
	for name, value := range values {
		in[name] = numbers(value)
	}
	return nil
}

// numbers replaces the numbers of JSON by integers or floats, which TOML distinguishes.
func numbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if integer, err := value.Int64(); err == nil {
			return integer
		}
		float, _ := value.Float64()
		return float
	case table:
		for name, one := range value {
			value[name] = numbers(one)
		}
	case []any:
		for i, one := range value {
			value[i] = numbers(one)
		}
	}
	return value
}

// set sets a value below tables, which it creates.
func set(in table, path []string, value any) error {
	for _, name := range path[:len(path)-1] {
		next, err := child(in, name)
		if err != nil {
			return err
		}
		in = next
	}
	in[path[len(path)-1]] = value
	return nil
}

// child returns a table in a table, which it creates.
func child(in table, name string) (table, error) {
	switch existing := in[name].(type) {
	case nil:
		created := table{}
		in[name] = created
		return created, nil
	case table:
		return existing, nil
	}
	return nil, fmt.Errorf("%s: %s is not a table", paths.ContainerdConfig, name)
}
