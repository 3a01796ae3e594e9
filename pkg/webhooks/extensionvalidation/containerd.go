package extensionvalidation

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// defaultUpstream is the upstream of the configuration for all registries without their own.
const defaultUpstream = "_default"

// containerdConfig is the containerd configuration of an OperatingSystemConfig.
type containerdConfig struct {
	SandboxImage string               `json:"sandboxImage"`
	Registries   []containerdRegistry `json:"registries"`
	Plugins      []containerdPlugin   `json:"plugins"`
}

type containerdRegistry struct {
	Upstream string           `json:"upstream"`
	Server   *string          `json:"server"`
	Hosts    []containerdHost `json:"hosts"`
}

type containerdHost struct {
	URL          string   `json:"url"`
	Capabilities []string `json:"capabilities"`
}

type containerdPlugin struct {
	Op     *string  `json:"op"`
	Path   []string `json:"path"`
	Values any      `json:"values"`
}

func (c *containerdConfig) check(path *field.Path) field.ErrorList {
	errs := required(text{path.Child("sandboxImage"), c.SandboxImage})
	upstreams := sets.New[string]()
	errs = append(errs, each(c.Registries, path.Child("registries"), func(path *field.Path, registry *containerdRegistry) field.ErrorList {
		return append(checkUpstream(path.Child("upstream"), registry.Upstream, upstreams), checkRegistry(path, registry)...)
	})...)
	return append(errs, each(c.Plugins, path.Child("plugins"), checkPlugin)...)
}

// checkUpstream includes the value in the error only if it is a host name, because a URL may contain a password.
func checkUpstream(path *field.Path, upstream string, seen sets.Set[string]) field.ErrorList {
	switch {
	case upstream == "":
		return field.ErrorList{missing(path)}
	case upstream != defaultUpstream && !isHostAndPort(upstream):
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be "+defaultUpstream+
			", or the host of a registry with or without its port, such as registry.example.com:5000")}
	case seen.Has(upstream):
		return field.ErrorList{field.Duplicate(path, upstream)}
	}
	seen.Insert(upstream)
	return nil
}

func checkRegistry(path *field.Path, registry *containerdRegistry) field.ErrorList {
	var errs field.ErrorList
	if registry.Server != nil {
		errs = append(errs, checkURL(path.Child("server"), *registry.Server)...)
	}
	return append(errs, each(registry.Hosts, path.Child("hosts"), func(path *field.Path, host *containerdHost) field.ErrorList {
		errs := checkURL(path.Child("url"), host.URL)
		return append(errs, each(host.Capabilities, path.Child("capabilities"), checkCapability)...)
	})...)
}

func checkCapability(path *field.Path, capability *string) field.ErrorList {
	all := []string{"pull", "resolve", "push"}
	if slices.Contains(all, *capability) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *capability, all)}
}

// isHostAndPort reports whether a value is a host name or IP address, with or without a port.
func isHostAndPort(value string) bool {
	parsed, err := url.Parse("https://" + value)
	if err != nil || parsed.Host != value || strings.HasSuffix(value, ":") {
		return false
	}
	if port := parsed.Port(); port != "" {
		if number, err := strconv.Atoi(port); err != nil || len(validation.IsValidPortNum(number)) > 0 {
			return false
		}
	}
	host := parsed.Hostname()
	return net.ParseIP(host) != nil || len(validation.IsDNS1123Subdomain(strings.ToLower(host))) == 0
}

// checkURL omits the value from the error, because it may contain a password.
func checkURL(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{missing(path)}
	}
	parsed, err := url.Parse(value)
	if err != nil || parsed.Hostname() == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			"must be a URL of the scheme http or https, such as https://registry.example.com")}
	}
	return nil
}

// checkPlugin omits the values from the error, because they may contain passwords. The default of op is add.
func checkPlugin(path *field.Path, plugin *containerdPlugin) field.ErrorList {
	var errs field.ErrorList
	if len(plugin.Path) == 0 {
		errs = append(errs, missing(path.Child("path")))
	}
	const add, remove = "add", "remove"
	if plugin.Op != nil && *plugin.Op != add && *plugin.Op != remove {
		errs = append(errs, field.NotSupported(path.Child("op"), *plugin.Op, []string{add, remove}))
	}
	if plugin.Values == nil {
		return errs
	}
	if plugin.Op != nil && *plugin.Op == remove {
		return append(errs, field.Forbidden(path.Child("values"), "must not be set if the plugin is removed"))
	}
	if _, isMapping := plugin.Values.(map[string]any); !isMapping {
		errs = append(errs, field.Invalid(path.Child("values"), field.OmitValueType{}, "must be a mapping"))
	}
	return errs
}
