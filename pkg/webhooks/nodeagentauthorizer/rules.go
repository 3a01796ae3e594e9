package nodeagentauthorizer

import (
	"context"
	"errors"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// secretNamespace is the namespace of the Secrets and Leases that node agents use.
	secretNamespace = metav1.NamespaceSystem
	// leasePrefix is the prefix of the names of the Leases of node agents. The name of the Node follows it.
	leasePrefix = "gardener-node-agent-"
	// nodeNameField is the field of Pods with the name of the Node.
	nodeNameField = "spec.nodeName"
)

// commonSecrets are the Secrets that all node agents may read.
var commonSecrets = []string{
	"gardener-valitail", "gardener-opentelemetry-collector",
	"shoot-access-kube-controller-manager", "shoot-access-kube-scheduler", "shoot-access-cluster-admin",
}

// rule defines the access of node agents to a resource.
type rule struct {
	verbs []string
	// subresources starts with the empty string, which is the object itself.
	subresources []string
	// apply decides on a request with one of the verbs.
	apply func(ctx context.Context, q *question) error
}

// rules defines the complete access of node agents.
var rules = map[schema.GroupResource]rule{
	{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}: {
		verbs: []string{"get", "create"}, subresources: []string{""}, apply: applyToRequests,
	},
	{Resource: "events"}:                            {verbs: []string{"create", "patch"}, subresources: []string{""}, apply: always},
	{Group: eventsv1.GroupName, Resource: "events"}: {verbs: []string{"create", "patch"}, subresources: []string{""}, apply: always},
	{Group: coordinationv1.GroupName, Resource: "leases"}: {
		verbs: []string{"get", "list", "watch", "create", "update"}, subresources: []string{""}, apply: applyToLeases,
	},
	{Resource: "nodes"}: {
		verbs: []string{"get", "list", "watch", "patch", "update"}, subresources: []string{"", "status"}, apply: applyToNodes,
	},
	{Resource: "pods"}: {
		verbs: []string{"get", "list", "watch", "delete"}, subresources: []string{""}, apply: applyToPods,
	},
	{Resource: "secrets"}: {
		verbs: []string{"get", "list", "watch"}, subresources: []string{""}, apply: applyToSecrets,
	},
}

func always(context.Context, *question) error { return nil }

// applyToRequests allows creating CertificateSigningRequests, and reading those that the node agent created.
func applyToRequests(ctx context.Context, q *question) error {
	if q.attributes.Verb == "create" {
		return nil
	}
	if q.attributes.Name != "" {
		own, err := q.isRequestOf(ctx, q.attributes.Name, q.user)
		if err != nil || own {
			return err
		}
	}
	return deny("node agents may only get CertificateSigningRequests that they created")
}

// applyToLeases allows the Lease of the agent's own Node and the Lease with the name of its configuration Secret.
func applyToLeases(ctx context.Context, q *question) error {
	if q.attributes.Namespace != secretNamespace {
		return deny("node agents have access only to Leases in the namespace %s", secretNamespace)
	}
	node, err := q.ownNode(ctx)
	if err != nil {
		return err
	}
	// API servers do not send the name of an object that is created with POST.
	if q.attributes.Name == leasePrefix+node.name || q.attributes.Name == "" && q.attributes.Verb == "create" {
		return nil
	}
	if q.attributes.Name != "" && q.attributes.Name == node.secret {
		known, err := q.isConfiguration(ctx, node.secret)
		if err != nil || known {
			return err
		}
	}
	return deny("this node agent has access only to the Lease %s and to the Lease with the name of its configuration Secret",
		leasePrefix+node.name)
}

// isConfiguration reports whether a name from a label of a Node is the name of a configuration. Node agents write the
// labels of their Node. Without this check, they could give themselves access to any Lease.
func (q *question) isConfiguration(ctx context.Context, secret string) (bool, error) {
	if q.machines {
		machine, err := q.machine(ctx, q.machineName)
		if err != nil || machine != nil && machine.secret == secret {
			return err == nil, err
		}
	}
	return q.isPoolSecret(ctx, secret)
}

// applyToNodes allows reading all Nodes and changing the agent's own Node.
func applyToNodes(ctx context.Context, q *question) error {
	if q.attributes.Verb == "list" || q.attributes.Verb == "watch" {
		return nil
	}
	node, err := q.ownNode(ctx)
	if err == nil && q.attributes.Name != node.name {
		return deny("this node agent has access only to the Node %s", node.name)
	}
	return err
}

// applyToPods allows access to the Pods of the agent's own Node. It allows reading all Pods if lists do not have to use a
// selector. A certificate without a Machine or Node gives no access.
func applyToPods(ctx context.Context, q *question) error {
	sees := q.attributes.Verb == "list" || q.attributes.Verb == "watch"
	node, err := q.ownNode(ctx)
	if err != nil || sees && !q.selectors {
		return err
	}
	if sees && selectsField(q.attributes.FieldSelector, nodeNameField, node.name) {
		return nil
	}
	// Without a namespace, the name would match Pods of all namespaces.
	if q.attributes.Name != "" && q.attributes.Namespace != "" {
		own, err := q.isPodOn(ctx, q.attributes.Namespace, q.attributes.Name, node.name)
		if err != nil || own {
			return err
		}
	}
	if sees {
		return deny("this node agent may only %s Pods with the field selector %s=%s", q.attributes.Verb, nodeNameField, node.name)
	}
	return deny("this node agent may only %s Pods on the Node %s", q.attributes.Verb, node.name)
}

// selectsField reports whether a selector matches only objects with this value of a field. One such requirement is
// sufficient, because all requirements must match. It ignores rawSelector, as the API demands of webhooks.
func selectsField(selector *authorizationv1.FieldSelectorAttributes, field, value string) bool {
	return selector != nil && slices.ContainsFunc(selector.Requirements, func(requirement metav1.FieldSelectorRequirement) bool {
		return requirement.Key == field && requirement.Operator == metav1.FieldSelectorOpIn &&
			slices.Equal(requirement.Values, []string{value})
	})
}

// applyToSecrets allows the Secrets that all node agents read, the agent's configuration Secrets, and the Secrets that
// these reference.
func applyToSecrets(ctx context.Context, q *question) error {
	if q.attributes.Namespace != secretNamespace {
		return deny("node agents have access only to Secrets in the namespace %s", secretNamespace)
	}
	name := q.attributes.Name
	if name == "" {
		return deny("node agents may only %s single Secrets: name one, for a list or watch by the field selector metadata.name",
			q.attributes.Verb)
	}
	common := slices.Contains(commonSecrets, name)
	if common && !q.machines {
		return nil
	}
	configurations, err := q.configurations(ctx)
	if err != nil || common || slices.Contains(configurations, name) {
		return err
	}
	var unreadable []error
	for _, configuration := range configurations {
		allowed, err := q.refersTo(ctx, configuration, name)
		if allowed {
			return nil
		}
		unreadable = append(unreadable, err)
	}
	if err := errors.Join(unreadable...); err != nil {
		return err
	}
	return deny("this node agent has no access to this Secret: it belongs neither to all node agents nor to the worker pool of the Node, " +
		"and no file of the operating system's configuration refers to it")
}

// configurations returns the names of the Secrets with the operating system configuration. If there are Machines, the
// Machine names its Secret. It may have none. Otherwise, the Node names it. While the Node does not exist, these are the
// Secrets of all pools, because the node agent is about to create its Node.
func (q *question) configurations(ctx context.Context) ([]string, error) {
	if q.machines {
		machine, err := q.machine(ctx, q.machineName)
		switch {
		case err != nil:
			return nil, err
		case machine == nil:
			return nil, deny("no machine %q found", q.machineName)
		case machine.secret == "":
			return nil, nil
		}
		return []string{machine.secret}, nil
	}
	node, err := q.node(ctx, q.machineName)
	switch {
	case err != nil:
		return nil, err
	case node == nil:
		return q.poolSecrets(ctx)
	case node.secret == "":
		return nil, nil
	}
	known, err := q.isPoolSecret(ctx, node.secret)
	if err != nil || !known {
		return nil, err
	}
	return []string{node.secret}, nil
}

// refersTo reports whether a file of a configuration that this Node gets references a Secret. While the Node does not
// exist, the files of all hosts count.
func (q *question) refersTo(ctx context.Context, configuration, secret string) (bool, error) {
	references, err := q.references(ctx, configuration)
	if err != nil {
		return false, err
	}
	hosts := map[string]bool{}
	for _, reference := range references {
		if reference.secret == secret {
			hosts[reference.host] = true
		}
	}
	if len(hosts) == 0 || hosts[""] { // the empty host matches all
		return hosts[""], nil
	}
	node, err := q.ownNode(ctx)
	if isDenial(err) { // the node agent reads its files before it creates its Node with the host label
		return true, nil
	}
	return err == nil && hosts[node.host], err
}

// resourcesOf returns the sorted names of the resources that have rules.
func resourcesOf(rules map[schema.GroupResource]rule) []string {
	names := make([]string, 0, len(rules))
	for resource := range rules {
		names = append(names, resource.String())
	}
	slices.Sort(names)
	return names
}
