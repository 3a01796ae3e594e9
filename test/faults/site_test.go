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

// call is what a request asks for: one of the verbs of Kubernetes' authorization, and of what.
type call struct {
	verb        string
	group       string
	resource    string
	subresource string
	namespace   string
	name        string
	// writer is the field manager, if it is not that of the controller of ManagedResources.
	writer string
	// by is the resource-manager that makes the call, if there is more than one, or the API server that is called, if it is not that of the seed.
	by string
}

// callOf takes a request apart. Discovery and whatever else is no resource has the path as its name.
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

// reads tells whether the call changes nothing.
func (c call) reads() bool { return slices.Contains([]string{"get", "list", "watch"}, c.verb) }

// appliesSimple tells whether the call applies an object that is the same again after somebody has deleted it: all but those of which
// others depend, or that somebody else has changed.
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

// kind names the call without the object, for example "patch_managedresources.status", or "new.patch_managedresources.status" if it is
// one of the resource-manager "new".
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

// site is one call of a scenario. Sites of the same name in two runs of the scenario are the same call.
type site struct {
	call
	// occurrence counts the same calls of a scenario, from 1.
	occurrence int
}

// String names the site. It has no slash and no blank, so that it can be a part of the name of a test.
func (s site) String() string { return fmt.Sprintf("%s_%d", s.call, s.occurrence) }

// polls is how often the same read is a site of its own. What is read more often is read until something has happened, as often as
// the machine is slow.
const polls = 2

// enumerated tells whether faults are injected at a site. Watches have faults of other kinds.
func (s site) enumerated() bool { return s.verb != "watch" && (!s.reads() || s.occurrence <= polls) }

// place names where in the resource-manager a call is made, as far as that can be told: all objects in manifests are treated alike.
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

// certain tells whether every run has the site: the first write to an object of the target. What is read, recorded and told depends on
// the order in which watches bring their news.
func (s site) certain() bool {
	return !s.reads() && s.occurrence == 1 && s.verb != "create" && s.resource != "managedresources"
}
