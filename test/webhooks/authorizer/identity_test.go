package authorizer

import (
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/trellis-k8s/trellis/test/kit"
)

// TestNodeAgentIdentity checks that the webhook has no opinion on a user without the prefix or the group.
func TestNodeAgentIdentity(t *testing.T) {
	f := newFixture(t)
	getOwn := call{verb: "get", base: core, resource: "nodes", name: "n-own"}
	for name, test := range map[string]struct {
		user   string
		groups []string
		want   string
	}{
		"a node agent":         {prefix + "m-own", []string{group}, "allow"},
		"more groups":          {prefix + "m-own", []string{"a", group, "b"}, "allow"},
		"no group":             {prefix + "m-own", []string{"a"}, "no opinion"},
		"another group":        {prefix + "m-own", []string{group + "s", "system:nodes"}, "no opinion"},
		"no prefix":            {"m-own", []string{group}, "no opinion"},
		"another prefix":       {"x" + prefix + "m-own", []string{group}, "no opinion"},
		"a shorter prefix":     {"gardener.cloud:node-agent:m-own", []string{group}, "no opinion"},
		"a kubelet":            {"system:node:n-own", []string{"system:nodes"}, "no opinion"},
		"no name":              {prefix, []string{group}, "deny"},
		"a name of nothing":    {prefix + "a/b", []string{group}, "deny"},
		"a Machine of nothing": {prefix + "m-none", []string{group}, "deny"},
	} {
		t.Run(name, func(t *testing.T) {
			status := f.newAgent(t, open, test.user, test.groups...).ask(getOwn)
			if word(status) != test.want {
				t.Errorf("the webhook answers %+v, want %s", status, test.want)
			}
			if test.want == "no opinion" && status != (authorizationv1.SubjectAccessReviewStatus{}) {
				t.Errorf("no opinion has a reason: %+v", status)
			}
		})
	}
}

// TestAPIServerAndRBAC shows the effect of each answer if RBAC allows everything. A denial denies the request. No opinion and errors do
// not. If the webhook does not answer, the failure policy ends the request.
func TestAPIServerAndRBAC(t *testing.T) {
	f := newFixture(t)
	getForeign := call{verb: "get", base: core, resource: "nodes", name: "n-foreign"}
	for name, test := range map[string]struct {
		mode, user string
		groups     []string
		call       call
		code       int
	}{
		"allowed":                {byMachine, "m-own", []string{group, allGroup}, call{verb: "get", base: core, resource: "nodes", name: "n-own"}, 200},
		"denied":                 {byMachine, "m-own", []string{group, allGroup}, getForeign, 403},
		"denied by the resource": {byMachine, "m-own", []string{group, allGroup}, call{verb: "list", base: core, resource: "configmaps"}, 403},
		"not asked":              {byMachine, "m-own", []string{allGroup}, getForeign, 200},
		"no opinion":             {open, "m-own", []string{allGroup}, getForeign, 200},
		"an error":               {broken, "m-own", []string{group, allGroup}, getForeign, 200},
		"an error without RBAC":  {broken, "m-own", []string{group}, getForeign, 403},
		"no answer":              {down, "m-own", []string{group, allGroup}, getForeign, 500},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := f.newAgent(t, test.mode, prefix+test.user, test.groups...).do(test.call)
			if code != test.code {
				t.Errorf("status %d, want %d: %s", code, test.code, text)
			}
		})
	}
}

// TestErrors checks that a failed read is an error with a code, neither allowed nor denied.
func TestErrors(t *testing.T) {
	f := newFixture(t)
	status := f.newAgent(t, broken, prefix+"m-own").ask(call{verb: "get", base: core, resource: "nodes", name: "n-own"})
	if status.Allowed || status.Denied || !strings.HasPrefix(status.EvaluationError, "500 read Machine m-own: ") {
		t.Errorf("the status is %+v", status)
	}
	// Requests that need no facts are decided nevertheless.
	if status := f.newAgent(t, broken, prefix+"m-own").ask(call{verb: "list", base: core, resource: "nodes"}); !status.Allowed {
		t.Errorf("the status is %+v", status)
	}
	if status := f.newAgent(t, broken, prefix+"m-own").ask(call{verb: "list", base: core, resource: "configmaps"}); !status.Denied {
		t.Errorf("the status is %+v", status)
	}
}

// TestNonResourceRequests checks that requests without a resource are denied, discovery included.
func TestNonResourceRequests(t *testing.T) {
	f := newFixture(t)
	agent := f.newAgent(t, byMachine, prefix+"m-own", group, allGroup)
	for _, path := range []string{"/api", "/apis", "/version", "/metrics", "/healthz"} {
		answers.take(agent.mode, agent.user)
		code, text := agent.do(call{verb: "get", base: strings.TrimSuffix(path, path[strings.LastIndex(path, "/"):]), resource: path[1:]})
		if code != http.StatusForbidden {
			t.Errorf("%s: status %d: %s", path, code, text)
		}
		said := answers.take(agent.mode, agent.user)
		if len(said) != 1 || !said[0].Denied || said[0].Reason != "node agents have access only to resources" {
			t.Errorf("%s: the webhook answers %+v", path, said)
		}
	}
}

// TestReviewsOfOthers checks that a client that may ask the API server about a node agent gets the same answers.
func TestReviewsOfOthers(t *testing.T) {
	f := newFixture(t)
	for name, want := range map[string]string{"gardener-valitail": "allow", "osc-own": "allow", "osc-foreign": "deny"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: prefix + "m-own", Groups: []string{group, "mode:" + byMachine},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: kubeSystem, Name: name},
		}}
		kit.Must(t, f.client.Create(t.Context(), review))
		if word(review.Status) != want {
			t.Errorf("%s: %+v, want %s", name, review.Status, want)
		}
	}
}

// TestIncompleteReviews checks that a review that lacks a field is denied like the incomplete request.
func TestIncompleteReviews(t *testing.T) {
	f := newFixture(t)
	for name, attributes := range map[string]authorizationv1.ResourceAttributes{
		"nothing":      {},
		"no verb":      {Resource: "nodes", Name: "n-own"},
		"no resource":  {Verb: "get", Name: "n-own"},
		"no name":      {Verb: "get", Resource: "nodes"},
		"no namespace": {Verb: "get", Resource: "secrets", Name: "osc-own"},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: prefix + "m-own", Groups: []string{group, allGroup, "mode:" + byMachine}, ResourceAttributes: &attributes,
		}}
		kit.Must(t, f.client.Create(t.Context(), review))
		if word(review.Status) != "deny" {
			t.Errorf("%s: %+v, want a denial", name, review.Status)
		}
	}
}
