package faults

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// call describes a request: one of the verbs of Kubernetes' authorization, and the resource.
type call struct {
	verb        string
	group       string
	resource    string
	subresource string
	namespace   string
	name        string
	// writer is the field manager, if it is not that of the ManagedResource controller.
	writer string
	// by is the resource-manager that makes the call, if several run, or the called API server, if it is not that of
	// the seed.
	by string
}

// callOf parses a request. For discovery and other requests without a resource, the name is the path.
func callOf(method string, target *url.URL) call {
	c := call{writer: target.Query().Get("fieldManager")}
	if c.writer == resourcesv1alpha1.FieldManager {
		c.writer = ""
	}
	parts := strings.Split(strings.Trim(target.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		c.group, parts = parts[1], parts[3:]
	default:
		return call{verb: "get", resource: "discovery", name: strings.Join(parts, ".")}
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		c.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	c.resource, c.name, c.subresource = parts[0], parts[1], parts[2]
	c.verb = verbOf(method, c.name, target)
	return c
}

func verbOf(method, name string, target *url.URL) string {
	watch, _ := strconv.ParseBool(target.Query().Get("watch"))
	switch {
	case watch:
		return "watch"
	case method == http.MethodGet && name == "":
		return "list"
	case method == http.MethodDelete && name == "":
		return "deletecollection"
	}
	return map[string]string{
		http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	}[method]
}

// reads reports whether the call changes nothing.
func (c call) reads() bool { return slices.Contains([]string{"get", "list", "watch"}, c.verb) }

// appliesSimple reports whether the call applies an object that can be restored completely after a deletion by
// hand. It excludes objects that other objects depend on and objects that another client has changed.
func (c call) appliesSimple() bool {
	if c.emits() {
		return true
	}
	return c.verb == "patch" && c.subresource == "" && c.writer == "" &&
		slices.Contains([]string{"configmaps", "secrets", "services", "serviceaccounts", "roles", "rolebindings", "coupons", "networkpolicies"}, c.resource)
}

// emits reports whether the call writes a bundle of a flow.
func (c call) emits() bool {
	return c.verb == "patch" && c.resource == "managedresources" && c.subresource == "" && (c.writer == sitesWriter || c.writer == shootWriter && c.name != shootNamespace)
}

// kind names the call without the object, for example "patch_managedresources.status". Calls of the
// resource-manager "new" have the prefix "new.".
func (c call) kind() string {
	resource := c.resource
	for _, part := range []string{c.subresource, strings.TrimPrefix(c.writer, resourcesv1alpha1.FieldManager+"-")} {
		if part != "" {
			resource += "." + part
		}
	}
	if c.by != "" {
		return c.by + "." + c.verb + "_" + resource
	}
	return c.verb + "_" + resource
}

// String names the call, for example "patch_configmaps_one".
func (c call) String() string {
	if c.name == "" {
		return c.kind()
	}
	return c.kind() + "_" + c.name
}

// site is one call of a scenario. Sites with the same name in two runs of the scenario are the same call.
type site struct {
	call
	// occurrence counts equal calls of a scenario, from 1.
	occurrence int
}

// String names the site. The name has no slash and no blank, so that it can be a part of a test's name.
func (s site) String() string { return fmt.Sprintf("%s_%d", s.call, s.occurrence) }

// polls is the number of times that the same read counts as a separate site. Further reads poll until something
// has happened. Their number depends on the speed of the machine.
const polls = 2

// enumerated reports whether faults are injected at a site. Watches have their own kinds of faults.
func (s site) enumerated() bool { return s.verb != "watch" && (!s.reads() || s.occurrence <= polls) }

// place names the code of the resource-manager that makes a call, as far as it is known. All objects in manifests
// are treated alike.
func (s site) place() string {
	c := s.call
	c.by = ""
	switch c.group + "/" + c.resource {
	case "/configmaps", "/secrets", "/services", "/serviceaccounts", "/pods", "rbac.authorization.k8s.io/roles",
		"rbac.authorization.k8s.io/rolebindings", "apiextensions.k8s.io/customresourcedefinitions", "apps/deployments", "apps/statefulsets",
		"apps/daemonsets", "batch/jobs", "batch/cronjobs", "monitoring.coreos.com/prometheuses", placeholder + ".example.org/coupons":
		c.resource = "objects"
	}
	return c.kind()
}

// certain reports whether every run has the site. This holds for the first write to an object of the target.
// Reads, records and reports depend on the order in which watch events arrive.
func (s site) certain() bool {
	return !s.reads() && s.occurrence == 1 && s.verb != "create" && s.resource != "managedresources"
}
