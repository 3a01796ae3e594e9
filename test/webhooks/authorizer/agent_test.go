package authorizer

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/test/kit"
)

// agent is a user of the API server.
type agent struct {
	*testing.T
	mode, user string
	host       string
	client     *http.Client
}

// newAgent returns a user who is a node agent unless other groups are given.
func (f *fixture) newAgent(t *testing.T, mode, user string, groups ...string) *agent {
	t.Helper()
	if len(groups) == 0 {
		groups = []string{group}
	}
	config := rest.CopyConfig(f.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "mode:"+mode)}
	httpClient, err := rest.HTTPClientFor(config)
	kit.Must(t, err)
	return &agent{T: t, mode: mode, user: user, host: strings.TrimSuffix(config.Host, "/"), client: httpClient}
}

// call is a request to the API.
type call struct {
	verb string
	// base is the path in front of namespaces and resource.
	base        string
	namespace   string
	resource    string
	subresource string
	name        string
	// selector is a field selector, in addition to the name.
	selector string
}

// ofMany reports whether the name is in the selector.
func (c call) ofMany() bool {
	return slices.Contains([]string{"list", "watch", "deletecollection"}, c.verb)
}

func (c call) path() string {
	path := c.base
	if c.namespace != "" {
		path += "/namespaces/" + c.namespace
	}
	path += "/" + c.resource
	if c.name != "" && !c.ofMany() {
		path += "/" + c.name
	}
	if c.subresource != "" {
		path += "/" + c.subresource
	}
	return path
}

func (c call) query() string {
	query := url.Values{}
	var selectors []string
	if c.ofMany() && c.name != "" {
		selectors = append(selectors, "metadata.name="+c.name)
	}
	if c.selector != "" {
		selectors = append(selectors, c.selector)
	}
	if len(selectors) > 0 {
		query.Set("fieldSelector", strings.Join(selectors, ","))
	}
	switch c.verb {
	case "watch":
		query.Set("watch", "true")
	case "create", "update", "patch", "delete", "deletecollection":
		query.Set("dryRun", "All")
	}
	return query.Encode()
}

var methods = map[string]string{
	"get": http.MethodGet, "list": http.MethodGet, "watch": http.MethodGet, "create": http.MethodPost, "update": http.MethodPut,
	"patch": http.MethodPatch, "delete": http.MethodDelete, "deletecollection": http.MethodDelete,
}

// do sends a request. It returns the status, and the message of the API server if it refuses.
func (a *agent) do(c call) (int, string) {
	a.Helper()
	target := a.host + c.path()
	if query := c.query(); query != "" {
		target += "?" + query
	}
	var body io.Reader
	if slices.Contains([]string{"create", "update", "patch"}, c.verb) {
		body = strings.NewReader("{}")
	}
	request, err := http.NewRequestWithContext(a.Context(), methods[c.verb], target, body)
	kit.Must(a, err)
	request.Header.Set("Content-Type", "application/json")
	if c.verb == "patch" {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := a.client.Do(request)
	kit.Must(a, err)
	defer response.Body.Close()
	if response.StatusCode < http.StatusBadRequest {
		return response.StatusCode, ""
	}
	text, err := io.ReadAll(response.Body)
	kit.Must(a, err)
	return response.StatusCode, string(text)
}

// ask sends a request and returns the webhook's status for it. It fails the test if the API server's answer does not match the status. The
// user has no rights by RBAC.
func (a *agent) ask(c call) authorizationv1.SubjectAccessReviewStatus {
	a.Helper()
	answers.take(a.mode, a.user)
	code, text := a.do(c)
	said := answers.take(a.mode, a.user)
	if len(said) == 0 {
		a.Fatalf("%s %s: the webhook was not called (status %d, %s)", c.verb, c.path(), code, text)
	}
	last := said[len(said)-1]
	if forbidden := code == http.StatusForbidden; forbidden == last.Allowed || last.Allowed && last.Denied {
		a.Errorf("%s %s: status %d for %+v: %s", c.verb, c.path(), code, last, text)
	}
	if last.Denied && !strings.Contains(text, escaped(last.Reason)) {
		a.Errorf("%s %s: the client does not get the reason %q, but %s", c.verb, c.path(), last.Reason, text)
	}
	return last
}

func escaped(text string) string {
	quoted := fmt.Sprintf("%q", text)
	return quoted[1 : len(quoted)-1]
}

// word returns the meaning of a status.
func word(status authorizationv1.SubjectAccessReviewStatus) string {
	switch {
	case status.EvaluationError != "":
		return "error"
	case status.Denied:
		return "deny"
	case status.Allowed:
		return "allow"
	default:
		return "no opinion"
	}
}
