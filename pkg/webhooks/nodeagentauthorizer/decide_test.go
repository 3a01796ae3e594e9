package nodeagentauthorizer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var errUnreadable = errors.New("unreadable")

// world contains facts in memory. The facts in unreadable cannot be read.
type world struct {
	machines   map[string]machine
	nodes      map[string]node
	pool       []string
	files      map[string][]reference
	pods       map[string]string
	requests   map[string]string
	unreadable []string
	asked      []string
}

func (w *world) ask(what, name string) error {
	w.asked = append(w.asked, what+" "+name)
	if slices.Contains(w.unreadable, what) {
		return errUnreadable
	}
	return nil
}

func (w *world) machine(_ context.Context, name string) (*machine, error) {
	if machine, found := w.machines[name]; found {
		return &machine, w.ask("machine", name)
	}
	return nil, w.ask("machine", name)
}

func (w *world) node(_ context.Context, name string) (*node, error) {
	if node, found := w.nodes[name]; found {
		node.name = name
		return &node, w.ask("node", name)
	}
	return nil, w.ask("node", name)
}

func (w *world) isPoolSecret(_ context.Context, name string) (bool, error) {
	return slices.Contains(w.pool, name), w.ask("secret", name)
}

func (w *world) poolSecrets(context.Context) ([]string, error) { return w.pool, w.ask("secrets", "") }

func (w *world) references(_ context.Context, secret string) ([]reference, error) {
	return w.files[secret], w.ask("configuration", secret)
}

func (w *world) isPodOn(_ context.Context, namespace, name, node string) (bool, error) {
	return node != "" && w.pods[namespace+"/"+name] == node, w.ask("pod", name)
}

func (w *world) isRequestOf(_ context.Context, name, user string) (bool, error) {
	return w.requests[name] == user, w.ask("request", name)
}

func newWorld() *world {
	return &world{
		machines: map[string]machine{"own": {node: "n-own", secret: "osc-own"}, "foreign": {node: "n-foreign", secret: "osc-foreign"}},
		nodes: map[string]node{
			"n-own": {secret: "osc-own", host: "host-own"}, "n-foreign": {secret: "osc-foreign", host: "host-foreign"},
			"own": {secret: "osc-own", host: "host-own"}, "nameless": {},
		},
		pool: []string{"osc-own", "osc-foreign"},
		files: map[string][]reference{
			"osc-own":     {{secret: "file-own"}, {secret: "file-host-own", host: "host-own"}, {secret: "file-host-foreign", host: "host-foreign"}},
			"osc-foreign": {{secret: "file-foreign"}},
		},
		pods:     map[string]string{"default/pod-own": "n-own", "default/pod-foreign": "n-foreign", "default/pod-unbound": ""},
		requests: map[string]string{"csr-own": userPrefix + "own", "csr-foreign": userPrefix + "foreign", "csr-nobody": ""},
	}
}

func specOf(user string, attributes authorizationv1.ResourceAttributes) *authorizationv1.SubjectAccessReviewSpec {
	return &authorizationv1.SubjectAccessReviewSpec{User: userPrefix + user, Groups: []string{userGroup}, ResourceAttributes: &attributes}
}

func in(field string, values ...string) metav1.FieldSelectorRequirement {
	return metav1.FieldSelectorRequirement{Key: field, Operator: metav1.FieldSelectorOpIn, Values: values}
}

// TestSelectors checks that a list of Pods must select the agent's own Node and nothing else.
func TestSelectors(t *testing.T) {
	notIn := metav1.FieldSelectorRequirement{Key: nodeNameField, Operator: metav1.FieldSelectorOpNotIn, Values: []string{"n-own"}}
	exists := metav1.FieldSelectorRequirement{Key: nodeNameField, Operator: metav1.FieldSelectorOpExists}
	for name, test := range map[string]struct {
		selector *authorizationv1.FieldSelectorAttributes
		want     verdict
	}{
		"none":               {nil, denied},
		"empty":              {&authorizationv1.FieldSelectorAttributes{}, denied},
		"the own Node":       {&authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{in(nodeNameField, "n-own")}}, allowed},
		"and something else": {&authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{in("a", "b"), in(nodeNameField, "n-own")}}, allowed},
		"two Nodes":          {&authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{in(nodeNameField, "n-own", "n-foreign")}}, denied},
		"a foreign Node":     {&authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{in(nodeNameField, "n-foreign")}}, denied},
		"no Node":            {&authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{in(nodeNameField)}}, denied},
		"the empty Node":     {&authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{in(nodeNameField, "")}}, denied},
		"another field":      {&authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{in("metadata.name", "n-own")}}, denied},
		"other Nodes":        {&authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{notIn}}, denied},
		"any Node":           {&authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{exists}}, denied},
		"not parsed":         {&authorizationv1.FieldSelectorAttributes{RawSelector: "spec.nodeName=n-own"}, denied},
	} {
		for _, verb := range []string{"list", "watch"} {
			spec := specOf("own", authorizationv1.ResourceAttributes{Verb: verb, Resource: "pods", FieldSelector: test.selector})
			got, err := decide(t.Context(), settings{machines: true, selectors: true}, spec, newWorld())
			if err != nil || got.verdict != test.want {
				t.Errorf("%s: %s: %+v, %v", name, verb, got, err)
			}
			got, err = decide(t.Context(), settings{machines: true}, spec, newWorld())
			if err != nil || got.verdict != allowed {
				t.Errorf("%s: %s, without support for selectors: %+v, %v", name, verb, got, err)
			}
		}
	}
}

// TestPodsNeedANode checks that an agent without a Node may not read Pods, whatever selectors API servers send.
func TestPodsNeedANode(t *testing.T) {
	for _, settings := range []settings{{}, {machines: true}, {selectors: true}, {machines: true, selectors: true}} {
		for _, user := range []string{"new", "nodeless"} {
			for _, verb := range []string{"list", "watch", "get", "delete"} {
				facts := newWorld()
				facts.machines["nodeless"] = machine{secret: "osc-own"}
				spec := specOf(user, authorizationv1.ResourceAttributes{Verb: verb, Resource: "pods", Namespace: "default", Name: "pod-own"})
				got, err := decide(t.Context(), settings, spec, facts)
				if err != nil || got.verdict != denied || !strings.Contains(got.reason, "no node for") {
					t.Errorf("%+v: %s %s: %+v, %v", settings, user, verb, got, err)
				}
			}
		}
	}
}

// TestHostFilesBeforeTheNode checks that a node agent may read host files before its Node exists, because it needs them to
// register the Node. The hostname of an agent is known only when the Node exists.
func TestHostFilesBeforeTheNode(t *testing.T) {
	for name, test := range map[string]struct {
		settings settings
		user     string
		change   func(*world)
		secret   string
		want     verdict
	}{
		"a Machine without a Node":           {settings{machines: true}, "bare", func(w *world) { w.machines["bare"] = machine{secret: "osc-own"} }, "file-host-own", allowed},
		"a Machine whose Node is to come":    {settings{machines: true}, "own", func(w *world) { delete(w.nodes, "n-own") }, "file-host-own", allowed},
		"no Machines, and no Node":           {settings{}, "new", func(*world) {}, "file-host-foreign", allowed},
		"not a file of the Machine's pool":   {settings{machines: true}, "bare", func(w *world) { w.machines["bare"] = machine{secret: "osc-own"} }, "file-foreign", denied},
		"no Machine":                         {settings{machines: true}, "new", func(*world) {}, "file-host-own", denied},
		"another host, once there is a Node": {settings{machines: true}, "own", func(*world) {}, "file-host-foreign", denied},
	} {
		facts := newWorld()
		test.change(facts)
		spec := specOf(test.user, authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "kube-system", Name: test.secret})
		got, err := decide(t.Context(), test.settings, spec, facts)
		if err != nil || got.verdict != test.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestIncompleteReviews checks that a review without the fields that API servers always set is neither allowed nor left to
// RBAC.
func TestIncompleteReviews(t *testing.T) {
	for name, spec := range map[string]*authorizationv1.SubjectAccessReviewSpec{
		"neither attributes": {User: userPrefix + "own", Groups: []string{userGroup}},
		"empty attributes":   specOf("own", authorizationv1.ResourceAttributes{}),
		"no verb":            specOf("own", authorizationv1.ResourceAttributes{Resource: "nodes", Name: "n-own"}),
		"no resource":        specOf("own", authorizationv1.ResourceAttributes{Verb: "get", Name: "n-own"}),
		"no name":            specOf("own", authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes"}),
		"no namespace":       specOf("own", authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Name: "osc-own"}),
	} {
		got, err := decide(t.Context(), settings{machines: true}, spec, newWorld())
		if err != nil || got.verdict != denied || got.reason == "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestLeastReads checks that only the facts that a decision depends on are read.
func TestLeastReads(t *testing.T) {
	for name, test := range map[string]struct {
		user       string
		settings   settings
		attributes authorizationv1.ResourceAttributes
		want       verdict
		asked      []string
	}{
		"wildcard":            {"own", settings{}, authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}, denied, nil},
		"any verb":            {"own", settings{}, authorizationv1.ResourceAttributes{Verb: "*", Resource: "nodes"}, denied, nil},
		"verb in capitals":    {"own", settings{}, authorizationv1.ResourceAttributes{Verb: "GET", Resource: "nodes"}, denied, nil},
		"subresource":         {"own", settings{}, authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Subresource: "*", Namespace: "kube-system", Name: "osc-own"}, denied, nil},
		"other group":         {"own", settings{}, authorizationv1.ResourceAttributes{Verb: "get", Group: "apps", Resource: "nodes", Name: "own"}, denied, nil},
		"nodes":               {"own", settings{machines: true}, authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"}, allowed, nil},
		"own node":            {"own", settings{machines: true}, authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes", Name: "n-own"}, allowed, []string{"machine own", "node n-own"}},
		"unnamed node":        {"nameless", settings{}, authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes"}, denied, []string{"node nameless"}},
		"own lease":           {"own", settings{}, authorizationv1.ResourceAttributes{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-system", Name: "gardener-node-agent-own"}, allowed, []string{"node own"}},
		"unnamed lease":       {"nameless", settings{}, authorizationv1.ResourceAttributes{Verb: "watch", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-system"}, denied, []string{"node nameless"}},
		"unnamed pod":         {"own", settings{}, authorizationv1.ResourceAttributes{Verb: "delete", Resource: "pods", Namespace: "default"}, denied, []string{"node own"}},
		"pod of any place":    {"own", settings{machines: true, selectors: true}, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Name: "pod-own"}, denied, []string{"machine own", "node n-own"}},
		"common secret":       {"own", settings{}, authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "kube-system", Name: "gardener-valitail"}, allowed, nil},
		"unnamed secret":      {"nameless", settings{}, authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets", Namespace: "kube-system"}, denied, nil},
		"own configuration":   {"own", settings{machines: true}, authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "kube-system", Name: "osc-own"}, allowed, []string{"machine own"}},
		"file of all hosts":   {"own", settings{machines: true}, authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "kube-system", Name: "file-own"}, allowed, []string{"machine own", "configuration osc-own"}},
		"file of the host":    {"own", settings{}, authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "kube-system", Name: "file-host-own"}, allowed, []string{"node own", "secret osc-own", "configuration osc-own", "node own"}},
		"path as a name":      {"own", settings{}, authorizationv1.ResourceAttributes{Verb: "get", Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Name: "../csr-own"}, denied, nil},
		"path as a namespace": {"own", settings{}, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: "default/pods", Name: "pod-own"}, denied, nil},
		"unnamed request":     {"own", settings{}, authorizationv1.ResourceAttributes{Verb: "get", Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}, denied, nil},
	} {
		facts := newWorld()
		got, err := decide(t.Context(), test.settings, specOf(test.user, test.attributes), facts)
		if err != nil || got.verdict != test.want || !slices.Equal(facts.asked, test.asked) {
			t.Errorf("%s: %+v, %v, read %q; want %s, %q", name, got, err, facts.asked, test.want, test.asked)
		}
		if (got.verdict == denied) != (got.reason != "") {
			t.Errorf("%s: the reason is %q", name, got.reason)
		}
	}
}

// TestForgedAndMissingLabels checks that the label of a Node counts only if it names a configuration, and that a Machine
// without a Node has none.
func TestForgedAndMissingLabels(t *testing.T) {
	lease := func(verb, name string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Verb: verb, Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-system", Name: name}
	}
	getNode := authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes", Name: "n-own"}
	for name, test := range map[string]struct {
		change     func(*world)
		attributes authorizationv1.ResourceAttributes
		want       verdict
	}{
		"created by a name":         {func(*world) {}, lease("create", "a"), denied},
		"created by its name":       {func(*world) {}, lease("create", "gardener-node-agent-n-own"), allowed},
		"created without a name":    {func(*world) {}, lease("create", ""), allowed},
		"a forged label":            {func(w *world) { w.nodes["n-own"] = node{secret: "a"} }, lease("update", "a"), denied},
		"the label of the Machine":  {func(w *world) { w.pool = nil }, lease("update", "osc-own"), allowed},
		"a Machine without a label": {func(w *world) { w.machines["own"] = machine{node: "n-own"} }, lease("update", "osc-own"), allowed},
		"neither":                   {func(w *world) { w.machines["own"], w.pool = machine{node: "n-own"}, nil }, lease("update", "osc-own"), denied},
		"a Machine without a Node":  {func(w *world) { w.machines["own"], w.nodes[""] = machine{}, node{} }, getNode, denied},
	} {
		facts := newWorld()
		test.change(facts)
		got, err := decide(t.Context(), settings{machines: true}, specOf("own", test.attributes), facts)
		if err != nil || got.verdict != test.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestUnreadableFacts checks that there is no decision if a relevant fact cannot be read.
func TestUnreadableFacts(t *testing.T) {
	kube := func(group, resource, verb, name string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: verb, Namespace: "kube-system", Name: name}
	}
	for _, test := range []struct {
		unreadable string
		attributes authorizationv1.ResourceAttributes
	}{
		{"machine", kube("", "nodes", "get", "n-own")},
		{"machine", kube("", "secrets", "get", "gardener-valitail")},
		{"machine", kube("coordination.k8s.io", "leases", "get", "gardener-node-agent-n-own")},
		{"node", kube("", "nodes", "get", "n-own")},
		{"node", kube("", "secrets", "get", "file-host-own")},
		{"node", kube("", "pods", "get", "pod-own")},
		{"pod", kube("", "pods", "get", "pod-own")},
		{"request", kube("certificates.k8s.io", "certificatesigningrequests", "get", "csr-own")},
		{"configuration", kube("", "secrets", "get", "file-own")},
	} {
		facts := newWorld()
		facts.unreadable = []string{test.unreadable}
		got, err := decide(t.Context(), settings{machines: true}, specOf("own", test.attributes), facts)
		if !errors.Is(err, errUnreadable) || got != (decision{}) {
			t.Errorf("without %s: %+v: %+v, %v", test.unreadable, test.attributes, got, err)
		}
	}
	// Without access to Machines.
	facts := newWorld()
	facts.unreadable = []string{"secret", "secrets"}
	for _, user := range []string{"own", "new"} {
		if _, err := decide(t.Context(), settings{}, specOf(user, kube("", "secrets", "get", "osc-own")), facts); !errors.Is(err, errUnreadable) {
			t.Errorf("%s: %v", user, err)
		}
	}
	// An unreadable configuration does not matter if another one answers the question.
	facts = newWorld()
	facts.pool = append(facts.pool, "bad")
	partly := &partlyUnreadable{facts}
	got, err := decide(t.Context(), settings{}, specOf("new", kube("", "secrets", "get", "file-foreign")), partly)
	if err != nil || got.verdict != allowed {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := decide(t.Context(), settings{}, specOf("new", kube("", "secrets", "get", "none")), partly); !errors.Is(err, errUnreadable) {
		t.Errorf("the error is %v", err)
	}
}

// partlyUnreadable has an unreadable configuration, the first one.
type partlyUnreadable struct{ *world }

func (p *partlyUnreadable) poolSecrets(context.Context) ([]string, error) {
	return []string{"bad", "osc-own", "osc-foreign"}, nil
}

func (p *partlyUnreadable) references(ctx context.Context, secret string) ([]reference, error) {
	if secret == "bad" {
		return nil, errUnreadable
	}
	return p.world.references(ctx, secret)
}

// FuzzDecide uses an oracle that does not know the rules: a user without the prefix and group is never allowed anything. No
// access is allowed to foreign objects, or to resources and verbs that are not in a list.
func FuzzDecide(f *testing.F) {
	for _, seed := range []string{
		"nodes|get|n-own", "nodes|patch|n-foreign", "secrets|get|osc-own", "secrets|list|", "secrets|get|file-foreign", "pods|get|pod-own", "pods|delete|pod-foreign",
		"leases|get|gardener-node-agent-n-own", "leases|update|gardener-node-agent-n-foreign", "certificatesigningrequests|get|csr-foreign", "pods|watch|", "*|*|*",
	} {
		parts := strings.Split(seed, "|")
		for _, group := range []string{"", "coordination.k8s.io", "certificates.k8s.io"} {
			f.Add(userPrefix+"own", userGroup, group, parts[0], "", parts[1], "kube-system", parts[2], "spec.nodeName", "n-own", true, true)
			f.Add(userPrefix+"own", "", group, parts[0], "status", parts[1], "default", parts[2], "spec.nodeName", "n-foreign", true, false)
			f.Add(userPrefix+"nameless", userGroup, group, parts[0], "", parts[1], "kube-system", parts[2], "", "", false, true)
		}
	}
	f.Fuzz(func(t *testing.T, user, userGroups, group, resource, subresource, verb, namespace, name, field, value string, machines, selectors bool) {
		attributes := authorizationv1.ResourceAttributes{
			Group: group, Resource: resource, Subresource: subresource, Verb: verb, Namespace: namespace, Name: name,
			FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{in(field, strings.Split(value, ",")...)}},
		}
		spec := &authorizationv1.SubjectAccessReviewSpec{User: user, Groups: strings.Split(userGroups, ","), ResourceAttributes: &attributes}
		got, err := decide(t.Context(), settings{machines: machines, selectors: selectors}, spec, newWorld())
		if err != nil {
			t.Fatal(err)
		}
		isAgent := strings.HasPrefix(user, userPrefix) && slices.Contains(spec.Groups, userGroup)
		if isAgent == (got.verdict == noOpinion) {
			t.Fatalf("%s of %v: %+v", user, spec.Groups, got)
		}
		if got.verdict != allowed {
			return
		}
		agent := strings.TrimPrefix(user, userPrefix)
		if objection := forbidden(agent, &attributes, selectors); objection != "" {
			t.Fatalf("%s: %+v is allowed: %s", agent, attributes, objection)
		}
	})
}

// forbidden returns an objection to the access in the world of newWorld, or an empty string.
func forbidden(agent string, a *authorizationv1.ResourceAttributes, selectors bool) string {
	sees := a.Verb == "list" || a.Verb == "watch"
	foreign := func(own ...string) bool { return !slices.Contains(own, a.Name) }
	onNode := agent == "own" || agent == "foreign" || strings.HasPrefix(agent, "n-") || agent == "nameless"
	switch {
	case agent == "" || strings.Contains(agent, "/"):
		return "the user is not a node agent"
	case slices.Contains([]string{"*", "deletecollection", "impersonate", "bind", "escalate", "approve", "connect"}, a.Verb):
		return "a verb that is never allowed"
	case a.Subresource != "" && (a.Resource != "nodes" || a.Subresource != "status"):
		return "a subresource"
	case a.Resource == "secrets" && (a.Namespace != "kube-system" || a.Name == "" || !sees && a.Verb != "get"):
		return "not one Secret of kube-system to be read"
	case a.Resource == "secrets" && agent == "own" && slices.Contains([]string{"osc-foreign", "file-foreign", "file-host-foreign"}, a.Name):
		return "a foreign Secret"
	case a.Resource == "leases" && (a.Namespace != "kube-system" || a.Name == "" && a.Verb != "create" || !onNode):
		return "not one of its own Leases"
	case a.Resource == "leases" && agent == "own" && foreign("", "osc-own", "gardener-node-agent-n-own", "gardener-node-agent-own"):
		return "a foreign Lease"
	case a.Resource == "nodes" && !sees && (agent == "own" && foreign("own", "n-own") || a.Name == "" || a.Verb == "delete" || a.Verb == "create"):
		return "a foreign Node"
	case a.Resource == "pods" && (!sees || selectors) && agent == "own" && foreign("pod-own") && (!sees || a.FieldSelector.Requirements[0].Key != nodeNameField):
		return "a foreign Pod"
	case a.Resource == "pods" && a.Name == "" && (a.Verb == "get" || a.Verb == "delete"):
		return "all Pods"
	case a.Resource == "certificatesigningrequests" && a.Verb != "create" && (a.Verb != "get" || a.Name != "csr-"+agent):
		return "a foreign CertificateSigningRequest"
	case a.Resource == "events" && a.Verb != "create" && a.Verb != "patch":
		return "Events may only be written"
	case !slices.Contains([]string{"secrets", "leases", "nodes", "pods", "certificatesigningrequests", "events"}, a.Resource):
		return "a resource that is never allowed"
	}
	return ""
}
