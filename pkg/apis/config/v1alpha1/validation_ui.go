package v1alpha1

import (
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateUI validates the server of the page, and that its port differs from those of the other servers.
func validateUI(c *ServerConfiguration, path *field.Path) field.ErrorList {
	if c.UI == nil {
		return nil
	}
	ui := path.Child("ui")
	errs := validateServer(&c.UI.Server, ui)
	if c.UI.BindAddress != "" && net.ParseIP(c.UI.BindAddress) == nil {
		errs = append(errs, field.Invalid(ui.Child("bindAddress"), c.UI.BindAddress,
			"must be an IP address, such as 127.0.0.1; leave it out for all"))
	}
	for name, other := range map[string]*Server{"webhooks": &c.Webhooks.Server, "healthProbes": c.HealthProbes, "metrics": c.Metrics} {
		if other != nil && other.Port == c.UI.Port {
			errs = append(errs, field.Invalid(ui.Child("port"), c.UI.Port, fmt.Sprintf("is that of %s", path.Child(name))))
		}
	}
	return errs
}
