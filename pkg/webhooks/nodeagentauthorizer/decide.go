package nodeagentauthorizer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// A node agent is a user in userGroup whose name consists of userPrefix and the name of its Machine.
const (
	userPrefix = "gardener.cloud:node-agent:machine:"
	userGroup  = "gardener.cloud:node-agents"
)

// verdict is one of the three possible responses to an API server.
type verdict string

const (
	noOpinion verdict = "no_opinion" // other authorizers decide
	allowed   verdict = "allowed"
	denied    verdict = "denied" // regardless of other authorizers
)

// decision is a verdict with a reason for users. The client receives the reason if the request is denied.
type decision struct {
	verdict verdict
	reason  string
}

// denial is the error of a rule that denies a request. Any other error means that the rule could not be evaluated.
type denial string

// Error returns the reason.
func (d denial) Error() string { return string(d) }

func deny(format string, args ...any) error { return denial(fmt.Sprintf(format, args...)) }

func isDenial(err error) bool {
	var reason denial
	return errors.As(err, &reason)
}

// settings are the settings of the decisions.
type settings struct {
	// machines is set if node agents belong to Machines, which reference their Nodes. Otherwise, the user name contains the
	// name of the Node.
	machines bool
	// selectors is set if lists of Pods must select the Pods of the agent's Node.
	selectors bool
}

// facts provides the facts that decisions depend on. The methods return nil or empty values without an error for objects
// that do not exist. Decisions read only the facts that they depend on.
type facts interface {
	// machine reads a Machine.
	machine(ctx context.Context, name string) (*machine, error)
	// node reads a Node.
	node(ctx context.Context, name string) (*node, error)
	// isPoolSecret reports whether secretNamespace has a Secret of this name with the label of a worker pool.
	isPoolSecret(ctx context.Context, name string) (bool, error)
	// poolSecrets returns the names of all these Secrets.
	poolSecrets(ctx context.Context) ([]string, error)
	// references returns the references in the operating system configuration of a Secret in secretNamespace.
	references(ctx context.Context, secret string) ([]reference, error)
	// isPodOn reports whether a Pod of this name runs on a Node.
	isPodOn(ctx context.Context, namespace, name, node string) (bool, error)
	// isRequestOf reports whether a user created the CertificateSigningRequest of this name.
	isRequestOf(ctx context.Context, name, user string) (bool, error)
}

// machine has the relevant fields of a Machine.
type machine struct {
	// node is the name of its Node. It is empty if the Node does not exist yet.
	node string
	// secret is the name of the Secret with the operating system configuration. It is empty if the Machine does not have
	// one.
	secret string
}

// node has the relevant fields of a Node.
type node struct {
	name string
	// secret is the same as for the Machine, but read from a label of the Node, which the node agent itself can change.
	secret string
	// host is the value of the label kubernetes.io/hostname.
	host string
}

// reference is a reference from an operating system file to a Secret in secretNamespace.
type reference struct {
	secret string
	// host is the only host that gets the file. If it is empty, all hosts get the file.
	host string
}

// decide decides on a review. It returns an error if the facts cannot be read.
func decide(ctx context.Context, settings settings, spec *authorizationv1.SubjectAccessReviewSpec, facts facts) (decision, error) {
	if !strings.HasPrefix(spec.User, userPrefix) || !slices.Contains(spec.Groups, userGroup) {
		return decision{verdict: noOpinion}, nil
	}
	question := &question{settings: settings, facts: facts, user: spec.User, machineName: machineOf(spec), attributes: spec.ResourceAttributes}
	err := question.answer(ctx, spec.NonResourceAttributes == nil)
	switch {
	case err == nil:
		return decision{verdict: allowed}, nil
	case isDenial(err):
		return decision{verdict: denied, reason: err.Error()}, nil
	default:
		return decision{}, err
	}
}

// machineOf returns the name of a node agent's Machine.
func machineOf(spec *authorizationv1.SubjectAccessReviewSpec) string {
	return strings.TrimPrefix(spec.User, userPrefix)
}

// question is a request of a node agent.
type question struct {
	settings
	facts
	user        string
	machineName string
	attributes  *authorizationv1.ResourceAttributes
}

// answer applies the rule of the resource. It returns nil if the request is allowed and a denial if it is denied.
func (q *question) answer(ctx context.Context, resourceRequest bool) error {
	if len(validation.IsDNS1123Subdomain(q.machineName)) > 0 {
		return deny("the user's name must end in the name of a Machine")
	}
	if !resourceRequest || q.attributes == nil {
		return deny("node agents have access only to resources")
	}
	// Objects with such names do not exist, and reading them would fail.
	for _, name := range []string{q.attributes.Namespace, q.attributes.Name} {
		if len(content.IsPathSegmentName(name)) > 0 {
			return deny("invalid name of an object or a namespace")
		}
	}
	resource := schema.GroupResource{Group: q.attributes.Group, Resource: q.attributes.Resource}
	rule, found := rules[resource]
	if !found {
		return deny("node agents have no access to this resource, only to %s", strings.Join(resourcesOf(rules), ", "))
	}
	if !slices.Contains(rule.subresources, q.attributes.Subresource) {
		if len(rule.subresources) == 1 {
			return deny("node agents have no access to subresources of %s", resource)
		}
		return deny("of the subresources of %s, node agents have access only to %s", resource, strings.Join(rule.subresources[1:], ", "))
	}
	if !slices.Contains(rule.verbs, q.attributes.Verb) {
		return deny("node agents may only %s %s", strings.Join(rule.verbs, ", "), resource)
	}
	return rule.apply(ctx, q)
}

// ownNode returns the Node of the node agent, or a denial if there is none.
func (q *question) ownNode(ctx context.Context) (*node, error) {
	name := q.machineName
	if q.machines {
		machine, err := q.machine(ctx, q.machineName)
		if err != nil {
			return nil, err
		}
		if machine == nil || machine.node == "" {
			return nil, q.noNode()
		}
		name = machine.node
	}
	node, err := q.node(ctx, name)
	if err == nil && node == nil {
		err = q.noNode()
	}
	return node, err
}

func (q *question) noNode() error { return deny("no node for %q found", q.machineName) }
