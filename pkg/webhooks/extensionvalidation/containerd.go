package extensionvalidation

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// defaultUpstream is the name of the registry configuration for all registries that have none of their own.
const defaultUpstream = "_default"

// containerdConfig is how an OperatingSystemConfig configures containerd.
type containerdConfig struct {
	SandboxImage string               `json:"sandboxImage"`
	Registries   []containerdRegistry `json:"registries"`
	Plugins      []containerdPlugin   `json:"plugins"`
}

type containerdRegistry struct {
	Upstream string  `json:"upstream"`
	Server   *string `json:"server"`
	Hosts    []struct {
		URL          string   `json:"url"`
		Capabilities []string `json:"capabilities"`
	} `json:"hosts"`
}

type containerdPlugin struct {
	Op     *string  `json:"op"`
	Path   []string `json:"path"`
	Values any      `json:"values"`
}

func (c *containerdConfig) check(path *field.Path) field.ErrorList {
	errs := required(text{path.Child("sandboxImage"), c.SandboxImage})
	upstreams := sets.New[string]()
	for i := range c.Registries {
		registry, registryPath := &c.Registries[i], path.Child("registries").Index(i)
		errs = append(errs, registry.check(registryPath)...)
		if upstreams.Has(registry.Upstream) {
			errs = append(errs, field.Duplicate(registryPath.Child("upstream"), registry.Upstream))
		}
		upstreams.Insert(registry.Upstream)
	}
	for i := range c.Plugins {
		errs = append(errs, c.Plugins[i].check(path.Child("plugins").Index(i))...)
	}
	return errs
}

func (r *containerdRegistry) check(path *field.Path) field.ErrorList {
	errs := required(text{path.Child("upstream"), r.Upstream})
	if r.Upstream != "" && r.Upstream != defaultUpstream && !isHostAndPort(r.Upstream) {
		errs = append(errs, field.Invalid(path.Child("upstream"), r.Upstream, "must be "+defaultUpstream+
			", or the host of a registry with or without its port, such as registry.example.com:5000"))
	}
	if r.Server != nil {
		errs = append(errs, checkURL(path.Child("server"), *r.Server)...)
	}
	for i, host := range r.Hosts {
		path := path.Child("hosts").Index(i)
		errs = append(errs, checkURL(path.Child("url"), host.URL)...)
		for j, capability := range host.Capabilities {
			switch capability {
			case "pull", "resolve", "push":
			default:
				errs = append(errs, field.NotSupported(path.Child("capabilities").Index(j), capability, []string{"pull", "resolve", "push"}))
			}
		}
	}
	return errs
}

// isHostAndPort takes names and addresses, with a port or without.
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

// checkURL does not tell the value, which may contain a password.
func checkURL(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{missing(path)}
	}
	parsed, err := url.Parse(value)
	if err != nil || parsed.Hostname() == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be a URL of the scheme http or https, such as https://registry.example.com")}
	}
	return nil
}

// check does not tell the values, which may contain passwords. Without an op, a plugin is added.
func (p *containerdPlugin) check(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(p.Path) == 0 {
		errs = append(errs, missing(path.Child("path")))
	}
	const add, remove = "add", "remove"
	if p.Op != nil && *p.Op != add && *p.Op != remove {
		errs = append(errs, field.NotSupported(path.Child("op"), *p.Op, []string{add, remove}))
	}
	if p.Values == nil {
		return errs
	}
	if p.Op != nil && *p.Op == remove {
		return append(errs, field.Forbidden(path.Child("values"), "what is removed has no values"))
	}
	if _, isMapping := p.Values.(map[string]any); !isMapping {
		errs = append(errs, field.Invalid(path.Child("values"), field.OmitValueType{}, "must be a mapping"))
	}
	return errs
}
