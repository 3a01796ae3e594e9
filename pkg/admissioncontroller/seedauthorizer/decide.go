package seedauthorizer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/requester"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Paths answers whether an object is needed by a Seed or a Shoot. [graph.Graph] implements it.
type Paths interface {
	Has(vertex graph.Vertex) bool
	HasPath(from, to graph.Vertex, access graph.Access) bool
	Path(from, to graph.Vertex, access graph.Access) []graph.Vertex
}

// Absent reports whether an object does not exist. It reads from the API server.
type Absent func(ctx context.Context, resource schema.GroupResource, vertex graph.Vertex) (bool, error)

// Decision is the answer to a request: it is allowed, or there is no opinion.
type Decision struct {
	Allowed bool
	// Reason explains the decision to people.
	Reason string
}

// attributes is a request for a resource.
type attributes struct {
	resource                           schema.GroupResource
	verb, namespace, name, subresource string
	fields                             []metav1.FieldSelectorRequirement
	labels                             []metav1.LabelSelectorRequirement
}

// is reports whether the request is one verb for one object.
func (a attributes) is(verb, namespace, name string) bool {
	return a.verb == verb && a.namespace == namespace && a.name == name
}

func attributesOf(spec *authorizationv1.ResourceAttributes) attributes {
	a := attributes{
		resource: schema.GroupResource{Group: spec.Group, Resource: spec.Resource},
		verb:     spec.Verb, namespace: spec.Namespace, name: spec.Name, subresource: spec.Subresource,
	}
	if spec.FieldSelector != nil {
		a.fields = spec.FieldSelector.Requirements
	}
	if spec.LabelSelector != nil {
		a.labels = spec.LabelSelector.Requirements
	}
	return a
}

// Decide decides about a request of any user. It is pure, except that it asks whether an object exists that a requester wants to delete and
// that is not in the graph. The error reports that this is not known.
func Decide(ctx context.Context, paths Paths, absent Absent, spec *authorizationv1.SubjectAccessReviewSpec) (Decision, error) {
	r, known := requester.Of(spec.User, spec.Groups)
	if !known || spec.ResourceAttributes == nil {
		return Decision{Reason: "not a request of a gardenlet or of an extension for a resource"}, nil
	}
	request := attributesOf(spec.ResourceAttributes)
	decision, err := decide(ctx, paths, absent, r, request)
	if err != nil || decision.Allowed {
		return decision, err
	}
	if delegated, is := delegatedSeed(paths, r); is {
		return decide(ctx, paths, absent, delegated, request)
	}
	return decision, nil
}

// delegatedSeed returns the requester for the Seed that is the cluster of an extension of a self-hosted Shoot.
func delegatedSeed(paths Paths, r requester.Requester) (requester.Requester, bool) {
	is := r.Program == requester.Extension && r.Seed == "" && r.Shoot.Namespace == constants.GardenNamespace && paths.Has(graph.SeedVertex(r.Shoot.Name))
	return requester.Requester{Program: requester.Extension, Seed: r.Shoot.Name}, is
}

// rulesFor returns the rules for a requester, and the object to which paths must lead.
func rulesFor(r requester.Requester) (map[schema.GroupResource]rule, graph.Vertex) {
	switch {
	case r.Seed != "":
		return seedRules, graph.SeedVertex(r.Seed)
	case r.Program == requester.Gardenadm:
		return gardenadmRules, graph.Vertex{}
	default:
		return shootRules, graph.ShootVertex(r.Shoot.Namespace, r.Shoot.Name)
	}
}

func no(format string, args ...any) (Decision, error) {
	return Decision{Reason: fmt.Sprintf(format, args...)}, nil
}

func yes(format string, args ...any) (Decision, error) {
	return Decision{Allowed: true, Reason: fmt.Sprintf(format, args...)}, nil
}

func decide(ctx context.Context, paths Paths, absent Absent, r requester.Requester, request attributes) (Decision, error) {
	rules, target := rulesFor(r)
	rule, found := rules[request.resource]
	if !found {
		return no("the %s has no access to %s", r, request.resource)
	}
	if rule.extension != nil && r.Program == requester.Extension {
		rule = *rule.extension
	}
	if !rule.namespaced {
		request.namespace = ""
	}
	if rule.namespace != nil && request.namespace != rule.namespace(r) {
		return no("the %s has access to %s in namespace %s only", r, request.resource, rule.namespace(r))
	}
	if rule.special != nil && rule.special(r, request) {
		return yes("the %s may always do this", r)
	}
	switch {
	case request.subresource != "" && !has(rule.subresources, request.subresource):
		return no("the %s has no access to %s/%s", r, request.resource, request.subresource)
	case has(rule.always, request.verb):
		return yes("the %s may always %s %s", r, request.verb, request.resource)
	case !has(rule.reachable, request.verb):
		return no("the %s may not %s %s", r, request.verb, request.resource)
	case request.verb == "create" && request.subresource == "":
		return no("the %s may create tokens of %s only", r, request.resource)
	}
	if request.verb == "list" || request.verb == "watch" {
		if rule.selectors != nil && selects(rule.selectors(r), request) {
			return yes("the selector is that of the %s", r)
		}
		if request.name == "" {
			return no("a %s of %s by the %s needs a name%s", request.verb, request.resource, r, describe(rule, r))
		}
	}
	if request.name == "" {
		return no("a %s of %s by the %s needs a name", request.verb, request.resource, r)
	}
	return reachable(ctx, paths, absent, request, graph.Vertex{Kind: rule.kind, Namespace: request.namespace, Name: request.name}, target)
}

// reachable decides about one object by the graph. A deletion of an object that does not exist is allowed, so that the requester learns that
// it does not exist.
func reachable(
	ctx context.Context, paths Paths, absent Absent, request attributes, vertex, target graph.Vertex,
) (Decision, error) {
	access := accessFor(request.verb)
	vertex = graph.Canonical(vertex)
	if vertex == target {
		return yes("%s is that of the requester", vertex)
	}
	if path := paths.Path(vertex, target, access); path != nil {
		return yes("%s is needed by %s: %s", vertex, target, describePath(path))
	}
	if request.verb == "delete" && request.subresource == "" && !paths.Has(vertex) {
		gone, err := absent(ctx, request.resource, vertex)
		if err != nil {
			return Decision{}, fmt.Errorf("read whether %s exists: %w", vertex, err)
		}
		if gone {
			return yes("%s does not exist", vertex)
		}
	}
	if access > graph.Read && paths.HasPath(vertex, target, graph.Read) {
		return no("%s is needed by %s, which may only read it", vertex, target)
	}
	return no("%s is not needed by %s", vertex, target)
}

// describePath returns the vertices of a path. Each is needed by the next one.
func describePath(path []graph.Vertex) string {
	names := make([]string, len(path))
	for i, vertex := range path {
		names[i] = vertex.String()
	}
	return strings.Join(names, " -> ")
}

// accessFor returns the access that a verb needs. Tokens of a WorkloadIdentity only read it.
func accessFor(verb string) graph.Access {
	switch verb {
	case "get", "list", "watch", "create":
		return graph.Read
	case "update", "patch":
		return graph.Protect
	default:
		return graph.Own
	}
}

// selects reports whether a request has all selectors. A requirement counts only with the own key and the operators =, == and in, and with
// no other value: other operators select objects of others, too.
func selects(selectors []selector, request attributes) bool {
	for _, wanted := range selectors {
		if !wanted.field && !slices.ContainsFunc(request.labels, func(got metav1.LabelSelectorRequirement) bool {
			return got.Key == wanted.key && got.Operator == metav1.LabelSelectorOpIn && only(got.Values, wanted.value)
		}) {
			return false
		}
		if wanted.field && !slices.ContainsFunc(request.fields, func(got metav1.FieldSelectorRequirement) bool {
			return got.Key == wanted.key && got.Operator == metav1.FieldSelectorOpIn && only(got.Values, wanted.value)
		}) {
			return false
		}
	}
	return len(selectors) > 0
}

// only reports whether a list has a value and no other.
func only(values []string, value string) bool {
	for _, one := range values {
		if one != value {
			return false
		}
	}
	return len(values) > 0
}

// describe names the selectors that permit a list.
func describe(rule rule, r requester.Requester) string {
	if rule.selectors == nil {
		return ""
	}
	var all []string
	for _, selector := range rule.selectors(r) {
		kind := "label"
		if selector.field {
			kind = "field"
		}
		all = append(all, fmt.Sprintf("%s selector %s=%s", kind, selector.key, selector.value))
	}
	return ", or the " + strings.Join(all, " and ")
}
